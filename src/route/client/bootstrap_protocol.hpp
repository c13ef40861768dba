// SPDX-License-Identifier: Apache-2.0
// What a rank and its launcher (python/wherry/route/bootstrap.py) say to each other, as frames of base/socket.hpp over
// a unix socket. Numbers are little-endian, byte strings have a u32 length before them:
//
//   rank      kJoin        u32 version, string key, u32 rank
//   launcher  kWelcome     u64 job
//   rank      kContribute  u32 round, bytes               rounds count from 0
//   launcher  kGathered    u32 round, u32 first, u32 count, count x bytes
//   launcher  kAbort       string why                     at any time: the job cannot go on
//   rank      kBroken      u32 cause, string why          once: this rank has found the job broken by rank `cause`
//                                                         (itself, or another; 0xffffffff: no rank is known)
//
// What was gathered in a round comes in as many frames as it takes, in the order of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "route/breakdown.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

enum class LauncherFrame : std::uint16_t {
  kJoin = 1,
  kWelcome = 2,
  kContribute = 3,
  kGathered = 4,
  kAbort = 5,
  kBroken = 6
};

inline constexpr std::uint32_t kLauncherProtocol = 2;

struct Gathered {
  std::uint32_t round = 0;
  std::uint32_t first = 0;  ///< the rank that contributions[0] is from
  std::vector<Bytes> contributions;
};

Bytes encode_join(const std::string& key, std::uint32_t rank);
Bytes encode_broken(const Breakdown& breakdown);
Bytes encode_contribution(std::uint32_t round, ByteView mine);
Result<std::uint64_t> decode_welcome(ByteView payload);
Result<Gathered> decode_gathered(ByteView payload);
/// Why the job cannot go on: one line of bounded length, whatever the payload is.
std::string decode_abort(ByteView payload);

}  // namespace wherry::route
