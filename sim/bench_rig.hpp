// SPDX-License-Identifier: Apache-2.0
// A core under measurement, set up by a card's driver, with the other nodes and clients that it needs.
#pragma once

#include <functional>
#include <vector>

#include "kv/net/frame_io.hpp"
#include "kv/node/driver/driver.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

struct RigOptions {
  std::uint32_t nodes = 1;   ///< of the cluster; this one is node 0
  std::uint32_t leader = 0;  ///< of all slots
  bool accept = false;
  HbmTiming memory = kHbmHardware;
  bool line_rate = false;           ///< its frames leave at 100 Gbit/s
  bool gaps = false;                ///< streams stop now and then
  std::vector<Subnet> sources{{}};  ///< whom the core answers: everybody
};

/// A decoded frame that the core sent.
struct Sent {
  Endpoint to;
  Kv header;
  std::size_t bytes = 0;
  std::vector<std::byte> value;
  Cycles first = 0;
  Cycles last = 0;
};

class Rig final : DriverOutput {
 public:
  static constexpr unsigned kBucketBits = 12;  ///< all lines fit the core's cache
  static constexpr std::uint16_t kEpoch = 1;

  /// The core serves, and is open if it leads. Otherwise the process ends with an error message.
  explicit Rig(const RigOptions& options);

  [[nodiscard]] Core& core() noexcept { return core_; }
  [[nodiscard]] static Endpoint node(std::uint32_t number);
  [[nodiscard]] static Endpoint client();

  /// Queues a frame that reaches the core at `not_before` or later.
  void put(const Endpoint& from, const Kv& header, ByteView value = {}, Cycles not_before = 0);
  /// Hands out the messages that the core has sent so far, except `enter`, which it answers itself.
  void collect(const std::function<void(const Sent&)>& take);
  /// Runs until the core sends a frame of that kind, and drops other frames.
  Sent await(Kind kind);
  /// Runs until nothing is in flight.
  void settle();
  /// Keys that all lie in different buckets.
  [[nodiscard]] static std::vector<std::uint64_t> keys(std::size_t count);

 private:
  void send(const ToKeeper&) override {}
  std::uint64_t draw_boot() override { return 1; }

  Core core_;
  Driver driver_;
};

/// The number of a key's first candidate bucket, as frames between nodes carry it.
[[nodiscard]] inline std::uint8_t first_candidate(std::uint64_t key) noexcept {
  const std::uint32_t hash = hash_of(key);
  return candidate_of(hash, bucket_of(hash, Rig::kBucketBits), Rig::kBucketBits);
}
[[nodiscard]] std::vector<std::byte> value_of(std::size_t bytes);
[[noreturn]] void give_up(const std::string& why);

}  // namespace wherry::kv::rtl
