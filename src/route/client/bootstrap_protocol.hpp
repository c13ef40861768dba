// SPDX-License-Identifier: Apache-2.0
// The protocol of a rank and its launcher (python/wherry/route/bootstrap.py): frames of base/socket.hpp over a unix
// socket. Numbers are little-endian. Byte strings follow a u32 length:
//
//   rank      kJoin        u32 version, string key, u32 rank
//   launcher  kWelcome     u64 job
//   rank      kContribute  u32 round, bytes               rounds count from 0
//   launcher  kGathered    u32 round, u32 first, u32 count, count x bytes
//   launcher  kAbort       string why                     at any time: the job has failed
//   rank      kFailed      u32 cause, string why          once: the job has failed, caused by rank `cause` (this one or
//                                                         another; 0xffffffff: no rank is known)
//
// The contributions to a round come in as many frames as needed, in the order of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "route/job_failure.hpp"
#include "wherry/status.hpp"

namespace wherry::route {

enum class LauncherFrame : std::uint16_t {
  kJoin = 1,
  kWelcome = 2,
  kContribute = 3,
  kGathered = 4,
  kAbort = 5,
  kFailed = 6
};

inline constexpr std::uint32_t kLauncherProtocol = 2;
/// The largest reason in kAbort and kFailed, in bytes. Longer text is cut.
inline constexpr std::size_t kMaxReasonBytes = 4096;

struct Gathered {
  std::uint32_t round = 0;
  std::uint32_t first = 0;  ///< the rank that gave contributions[0]
  std::vector<Bytes> contributions;
};

Bytes encode_join(const std::string& key, std::uint32_t rank);
Bytes encode_failed(const JobFailure& failure);
Bytes encode_contribution(std::uint32_t round, ByteView mine);
Result<std::uint64_t> decode_welcome(ByteView payload);
Result<Gathered> decode_gathered(ByteView payload);
/// Why the job has failed. Returns one line of bounded length for any payload.
std::string decode_abort(ByteView payload);

}  // namespace wherry::route
