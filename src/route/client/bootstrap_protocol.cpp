// SPDX-License-Identifier: Apache-2.0
#include "route/client/bootstrap_protocol.hpp"

#include <algorithm>

namespace wherry::route {
namespace {

Status malformed(const char* what) {
  return {StatusCode::kProtocol, std::string("the launcher sent a malformed ") + what +
                                     ": use a `wherry run` of the same version as the library"};
}

}  // namespace

Bytes encode_join(const std::string& key, std::uint32_t rank) {
  Writer out;
  out.put(kLauncherProtocol);
  out.put_string(key);
  out.put(rank);
  return std::move(out).take();
}

Bytes encode_failed(const JobFailure& failure) {
  Writer out;
  out.put(failure.cause);
  out.put_string(failure.why.message().substr(0, kMaxReasonBytes));
  return std::move(out).take();
}

Bytes encode_contribution(std::uint32_t round, ByteView mine) {
  Writer out;
  out.put(round);
  out.put_bytes(mine);
  return std::move(out).take();
}

Result<std::uint64_t> decode_welcome(ByteView payload) {
  Reader in(payload);
  const auto job = in.get<std::uint64_t>();
  if (!in.at_end()) return malformed("welcome");
  return job;
}

Result<Gathered> decode_gathered(ByteView payload) {
  Reader in(payload);
  Gathered gathered;
  gathered.round = in.get<std::uint32_t>();
  gathered.first = in.get<std::uint32_t>();
  const auto count = in.get<std::uint32_t>();
  // Each item has at least four bytes, so this check limits memory to the bytes that have arrived.
  if (!in.ok() || count == 0 || count > in.remaining() / 4) return malformed("answer to an exchange");
  gathered.contributions.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const ByteView bytes = in.get_bytes();
    gathered.contributions.emplace_back(bytes.begin(), bytes.end());
  }
  if (!in.at_end()) return malformed("answer to an exchange");
  return gathered;
}

std::string decode_abort(ByteView payload) {
  Reader in(payload);
  std::string why = in.get_string();
  if (!in.at_end() || why.empty()) return "the launcher ended the job";
  why.resize(std::min(why.size(), kMaxReasonBytes));
  return printable(std::move(why));
}

}  // namespace wherry::route
