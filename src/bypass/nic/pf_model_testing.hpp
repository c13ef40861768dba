// SPDX-License-Identifier: Apache-2.0
// For tests: a virtual function's registers, and the driver of its physical function behind them. It reads messages
// field by field at the offsets of virtchnl.h, and refuses what Linux's drivers refuse. Its rules come from Linux, not
// from our client: include/linux/avf/virtchnl.h (virtchnl_vc_validate_vf_msg, and the comment above each operation),
// i40e_virtchnl_pf.c, ice/virt/virtchnl.c. Registers: DPDK iavf/base/iavf_register.h, iavf_adminq_cmd.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "bypass/nic/registers.hpp"

namespace wherry::bypass::testing_support {

template <typename T>
T field(std::span<const std::byte> bytes, std::size_t offset) {
  T value{};
  if (offset + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
template <typename T>
void set(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  if (bytes.size() < offset + sizeof value) bytes.resize(offset + sizeof value);
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

class PfModel final : public Registers {
 public:
  static constexpr std::uint16_t kVsi = 7;
  static constexpr std::uint32_t kKeyBytes = 52, kLutEntries = 64;  ///< of i40e and ice
  struct Queue {
    std::uint64_t rx_ring = 0, tx_ring = 0;
    std::uint32_t rx_entries = 0, tx_entries = 0;
    bool configured = false, has_vector = false, rx_on = false, tx_on = false;
  };

  /// The memory for messages, which the function's DMA reaches.
  std::span<std::byte> memory;
  std::uint64_t address = 0;

  // What a test sets.
  bool silent = false;  ///< takes messages and does not answer
  bool dead = false;    ///< takes no message
  bool removed = false;
  std::uint32_t lacks = 0;   ///< capabilities that it does not offer
  std::uint32_t refuse = 0;  ///< operation that is refused
  std::uint32_t minor = 1;
  std::size_t cut = 0;          ///< bytes that its resources lack
  bool chatty = false;          ///< an event before each answer
  std::uint32_t granted = 4;    ///< queue pairs that the function has
  std::uint32_t available = 4;  ///< that it may have if it asks
  std::uint32_t reset_at = 0;   ///< the operation at which it resets the function, once
  bool announces = true;        ///< its resets
  std::uint32_t key_bytes = kKeyBytes, lut_entries = kLutEntries;

  // What a test asks.
  std::vector<std::uint32_t> operations;
  std::map<std::uint32_t, std::vector<std::byte>> last;
  std::vector<std::string> faults;    ///< what no driver may do
  std::vector<std::string> refusals;  ///< messages that Linux's drivers refuse, and why
  std::map<std::uint32_t, std::uint32_t> values;
  int resets = 0;
  std::vector<Queue> queues;
  std::vector<std::uint8_t> key, lut;
  /// True if any queue of the function may access memory.
  [[nodiscard]] bool moves() const;
  /// The queue that the table gives for a hash; -1 if that queue is off.
  [[nodiscard]] int queue_of(std::uint32_t hash) const;

  std::uint32_t read(std::uint32_t offset) override;
  void write(std::uint32_t offset, std::uint32_t value) override;
  void pause(std::chrono::microseconds time) override { now_ += static_cast<std::uint64_t>(time.count()); }

  void send(std::uint32_t operation, std::int32_t status, const std::vector<std::byte>& bytes);
  /// Models a reset of the function by its driver or by the administrator.
  void reset_function();

 private:
  [[nodiscard]] std::size_t where(std::uint64_t bus);
  void put16(std::size_t offset, std::uint16_t value) { std::memcpy(memory.data() + offset, &value, 2); }
  void put32(std::size_t offset, std::uint32_t value) { std::memcpy(memory.data() + offset, &value, 4); }
  void take();
  void answer(std::uint32_t operation, const std::vector<std::byte>& message);
  [[nodiscard]] std::vector<std::byte> resources(std::uint32_t wanted) const;
  /// Returns 0, or the status with which the PF refuses the message.
  std::int32_t refused(std::uint32_t operation, std::span<const std::byte> message);
  std::int32_t configure_queues(std::span<const std::byte> message);
  std::int32_t map_vectors(std::span<const std::byte> message);
  std::int32_t select_queues(std::uint32_t operation, std::span<const std::byte> message);
  std::int32_t set_key(std::span<const std::byte> message);
  std::int32_t set_lut(std::span<const std::byte> message);
  std::int32_t no(std::int32_t status, std::string why);

  std::uint64_t now_ = 0, active_at_ = 0;
  bool has_resources_ = false;
  std::uint32_t capabilities_ = 0;
};

}  // namespace wherry::bypass::testing_support
