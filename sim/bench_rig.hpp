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

/// A frame of the core's, read.
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

  /// Serving, and open if it leads. Ends the process with a sentence if it does not get there.
  explicit Rig(const RigOptions& options);

  [[nodiscard]] Core& core() noexcept { return core_; }
  [[nodiscard]] static Endpoint node(std::uint32_t number);
  [[nodiscard]] static Endpoint client();

  /// A frame to the core, not before a cycle.
  void put(const Endpoint& from, const Kv& header, ByteView value = {}, Cycles not_before = 0);
  /// Messages that the core has sent by now: `enter` is answered, the others are handed out.
  void collect(const std::function<void(const Sent&)>& take);
  /// Until a frame of that kind leaves; others meanwhile are dropped.
  Sent await(Kind kind);
  /// Runs until nothing is in flight.
  void settle();
  /// Keys, each of its own bucket.
  [[nodiscard]] static std::vector<std::uint64_t> keys(std::size_t count);

 private:
  void send(const ToKeeper&) override {}
  std::uint64_t draw_boot() override { return 1; }

  Core core_;
  Driver driver_;
};

/// The number by which frames between nodes name the first of a key's buckets.
[[nodiscard]] inline std::uint8_t first_candidate(std::uint64_t key) noexcept {
  const std::uint32_t hash = hash_of(key);
  return candidate_of(hash, bucket_of(hash, Rig::kBucketBits), Rig::kBucketBits);
}
[[nodiscard]] std::vector<std::byte> value_of(std::size_t bytes);
[[noreturn]] void give_up(const std::string& why);

}  // namespace wherry::kv::rtl
