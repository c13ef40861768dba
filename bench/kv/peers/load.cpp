// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <numeric>
#include <random>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "kv/peers/peer.hpp"

namespace wherry::kv::bench {
namespace {

constexpr std::uint64_t kSilentNs = 60'000'000'000;  // what hangs; other programs may have the machine

/// Until something has ended. Returns an error if the operation failed, or took more than a minute.
wherry::Status until_some(Peer& peer, Idle idle, std::vector<std::uint32_t>& ended) {
  ended.clear();
  const std::uint64_t give_up = now_ns() + kSilentNs;
  for (;;) {
    WHERRY_TRY(peer.poll(ended));
    if (!ended.empty()) return {};
    if (now_ns() > give_up) return {StatusCode::kDeadlineExceeded, "no answer within a minute"};
    peer.wait(idle);
  }
}

}  // namespace

wherry::Status fill(Peer& peer, const PeerLoad& options) {
  constexpr std::uint64_t kAtOnce = kEtcdInFlight;
  const Bytes value(options.value_bytes, std::byte{1});
  std::vector<std::uint32_t> ended;
  for (std::uint64_t key = 1; key <= options.keys;) {
    std::uint64_t posted = 0;
    for (; posted < kAtOnce && key <= options.keys; ++posted) peer.write(0, key++, value);
    WHERRY_TRY(peer.flush());
    while (posted > 0) {
      WHERRY_TRY(until_some(peer, Idle::sleep, ended));
      posted -= ended.size();
    }
  }
  return {};
}

Result<VerbResult> load(Peer& peer, const PeerLoad& options) {
  VerbResult result;
  std::mt19937_64 random(options.seed);
  Bytes value(options.value_bytes);
  for (std::byte& byte : value) byte = static_cast<std::byte>(random());
  std::vector<std::uint64_t> began(options.depth);
  std::vector<std::uint32_t> free(options.depth), ended;
  std::iota(free.begin(), free.end(), 0U);
  const std::uint64_t from = now_ns() + static_cast<std::uint64_t>(options.warm_up * 1e9);
  const std::uint64_t end = from + static_cast<std::uint64_t>(options.seconds * 1e9);
  for (;;) {
    // One reading of the clock: with two, the loop would wait in vain if the end lay between them.
    const std::uint64_t now = now_ns();  // what is posted now leaves together
    if (now >= end && free.size() == options.depth) break;
    if (now < end) {
      for (const std::uint32_t tag : free) {
        const std::uint64_t key = 1 + random() % options.keys;
        began[tag] = now;
        if (options.verb == Verb::read)
          peer.read(tag, key);
        else
          peer.write(tag, key, value);
      }
      free.clear();
      WHERRY_TRY(peer.flush());
    }
    WHERRY_TRY(until_some(peer, options.idle, ended));
    const std::uint64_t answered = now_ns();
    for (const std::uint32_t tag : ended) {
      free.push_back(tag);
      if (began[tag] < from) continue;
      result.latencies.add(answered - began[tag]);
      ++result.outcomes[static_cast<std::size_t>(Outcome::kOk)];
    }
  }
  return result;
}

}  // namespace wherry::kv::bench
