// SPDX-License-Identifier: Apache-2.0
// A virtual function of X710 to E830. Messages to the driver of the physical function (virtchnl.hpp) hand over its
// queues, through a pair of admin queues in this process's memory. The physical function stays with its kernel driver.
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
  /// A VF has no heads and no counters among its registers: zeros.
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
  /// post(), and waits until the NIC has taken it.
  Status send(Operation operation, ByteView message);
  /// Opens the message queues; version and resources.
  Status greet();
  /// Resets the function. It loses everything that was handed over, and its message queues.
  Status reset_function();
  /// The function is being reset, and the message queues with it: waits until it is back.
  Status come_back();
  /// The PF gives `pairs` queue pairs, or says how many it has; the function is reset for it.
  Status request_pairs(std::uint32_t pairs);
  /// Which queue a frame goes to: by a hash of its flow, or all to queue 0.
  Status spread(std::uint32_t pairs);
  [[nodiscard]] bool offers(std::uint32_t capability) const { return (resources_.capabilities & capability) != 0; }
  /// Sends, and waits for the answer with this number; events in between are taken note of. kUnavailable, and
  /// being_reset_: the PF resets the function instead.
  Result<Bytes> ask(Operation operation, ByteView message);
  /// The PF resets the function: nothing that was handed over counts any more.
  void lose();
  [[nodiscard]] bool was_reset();
  /// The next message, if there is one.
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
