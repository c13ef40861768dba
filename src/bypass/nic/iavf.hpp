// SPDX-License-Identifier: Apache-2.0
// A virtual function of X710 to E830. Messages to the driver of the physical function (virtchnl.hpp) configure its
// queues. They use a pair of admin queues in this process's memory. The physical function keeps its kernel driver.
// Sources: DPDK drivers/net/intel/iavf: base/iavf_adminq.c, base/iavf_register.h, iavf_ethdev.c, iavf_vchnl.c.
#pragma once

#include "base/bytes.hpp"
#include "bypass/nic/nic.hpp"
#include "bypass/nic/virtchnl.hpp"

namespace wherry::bypass {

class Iavf final : public Nic {
 public:
  /// `memory`: kMessageMemory bytes, aligned to 4096 for the NIC. reset() zeroes it.
  Iavf(const Personality& personality, Registers& registers, DmaMemory memory)
      : personality_(personality), registers_(registers), memory_(memory) {}

  Status reset() override;
  Status start(const NicSetup& setup) override;
  Status stop() override;
  void write_rx_tail(std::uint32_t value) override { registers_.write(personality_.rx_tail_offset, value); }
  void write_tx_tail(std::uint32_t value) override { registers_.write(personality_.tx_tail_offset, value); }
  /// Returns zeros: a VF has no registers for heads or counters.
  [[nodiscard]] Progress progress() override { return {}; }
  [[nodiscard]] Link link() override;
  [[nodiscard]] MacAddress mac() const override { return resources_.mac; }
  [[nodiscard]] const Personality& personality() const noexcept override { return personality_; }
  [[nodiscard]] bool has_loopback() const noexcept override { return false; }

 private:
  using Operation = virtchnl::Operation;
  Status wait_active();
  Status open_queues();
  void post_receive(std::uint32_t index);
  void post(Operation operation, ByteView message);
  /// Posts a message, and waits until the NIC has taken it.
  Status send(Operation operation, ByteView message);
  /// Opens the message queues, and asks for version and resources.
  Status greet();
  /// Resets the function. The function loses its rings and its message queues.
  Status reset_function();
  /// Waits until a reset of the function, and of its message queues, is over.
  Status come_back();
  /// Asks the PF for `pairs` queue pairs. The PF grants them and resets the function, or answers how many it has.
  Status request_pairs(std::uint32_t pairs);
  /// Sets which queue a frame goes to: by a hash of its flow, or always queue 0.
  Status spread(std::uint32_t pairs);
  [[nodiscard]] bool offers(std::uint32_t capability) const { return (resources_.capabilities & capability) != 0; }
  /// Sends, and waits for the answer with this number. Events that arrive meanwhile are recorded. kUnavailable, and
  /// being_reset_ is set: the PF resets the function instead of answering.
  Result<Bytes> ask(Operation operation, ByteView message);
  /// Records that the PF resets the function: its rings and queues are no longer valid.
  void lose();
  [[nodiscard]] bool was_reset();
  /// Gets the next message, if there is one.
  bool try_receive(Operation& operation, std::int32_t& status, Bytes& message);
  void take_note(ByteView event);
  [[nodiscard]] Status failed(std::string_view what) const;

  const Personality& personality_;
  Registers& registers_;
  DmaMemory memory_;
  std::uint32_t send_next_ = 0, receive_next_ = 0;
  bool open_ = false;
  bool being_reset_ = false;  ///< by the PF, which was not asked; come_back() has not waited for it
  std::uint32_t pairs_ = 1;   ///< handed over
  virtchnl::Resources resources_{};
  Link link_{};
};

}  // namespace wherry::bypass
