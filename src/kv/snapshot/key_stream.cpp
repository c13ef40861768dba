// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/key_stream.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "kv/generated/frame.hpp"

namespace wherry::kv {
namespace {

constexpr std::size_t kGreetingBytes = 20;
constexpr std::size_t kPieceBytes = 8;
constexpr std::uint32_t kComplete = 1, kLeft = 2;

wherry::Status wrong(const char* why) {
  return {StatusCode::kProtocol, fmt::format("the node's list of keys is none: {}", why)};
}

}  // namespace

Bytes pack_greeting(const KeyGreeting& greeting) {
  Writer out;
  out.put(kKeyStreamMagic);
  out.put(kKeyStreamVersion);
  out.put(greeting.node);
  out.put(greeting.source);
  out.put(greeting.bucket_bits);
  out.put(greeting.epoch);
  out.put(std::uint32_t{greeting.serves ? 1U : 0U});
  return std::move(out).take();
}

Bytes pack_keys(std::uint32_t buckets, const std::vector<std::uint64_t>& keys) {
  Writer out;
  out.put(buckets);
  out.put(static_cast<std::uint32_t>(keys.size()));
  for (const std::uint64_t key : keys) out.put(key);
  return std::move(out).take();
}

Bytes pack_key_end(bool complete) {
  Writer out;
  out.put(std::uint32_t{0});
  out.put(complete ? kComplete : kLeft);
  return std::move(out).take();
}

wherry::Status KeyStreamParser::feed(ByteView bytes) {
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  return take();
}

wherry::Status KeyStreamParser::take() {
  std::size_t used = 0;
  for (;;) {
    const ByteView rest = ByteView(waiting_).subspan(used);
    if (state_ != State::greeting && state_ != State::listing) {
      if (!rest.empty()) return wrong("bytes follow its end");
      break;
    }
    Reader in(rest);
    if (state_ == State::greeting) {
      if (rest.size() < kGreetingBytes) break;
      const bool ours = in.get<std::uint32_t>() == kKeyStreamMagic && in.get<std::uint16_t>() == kKeyStreamVersion;
      greeting_.node = in.get<std::uint8_t>();
      const auto source = in.get<std::uint8_t>();
      greeting_.bucket_bits = in.get<std::uint32_t>();
      greeting_.epoch = in.get<std::uint32_t>();
      const auto serves = in.get<std::uint32_t>();
      if (!ours || greeting_.node >= kMaxNodes || source > 1 || greeting_.bucket_bits > kMaxBucketBits || serves > 1)
        return wrong("its first bytes are others");
      greeting_.source = static_cast<SnapshotSource>(source);
      greeting_.serves = serves == 1;
      state_ = greeting_.serves ? State::listing : State::not_serving;
      used += kGreetingBytes;
      continue;
    }
    if (rest.size() < kPieceBytes) break;
    const auto buckets = in.get<std::uint32_t>();
    const auto keys = in.get<std::uint32_t>();
    const std::uint64_t all = std::uint64_t{1} << greeting_.bucket_bits;
    if (buckets == 0) {
      if (keys != kComplete && keys != kLeft) return wrong("its end");
      if (keys == kComplete && buckets_ != all) return wrong("buckets are missing");
      state_ = keys == kComplete ? State::complete : State::left;
      used += kPieceBytes;
      continue;
    }
    if (buckets > kMaxPieceBuckets || keys > buckets * kWays || buckets_ + buckets > all)
      return wrong("more keys, or buckets, than there can be");
    if (in.remaining() < std::size_t{keys} * sizeof(std::uint64_t)) break;
    for (std::uint32_t i = 0; i < keys; ++i) keys_.push_back(in.get<std::uint64_t>());
    buckets_ += buckets;
    used += kPieceBytes + std::size_t{keys} * sizeof(std::uint64_t);
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(used));
  return {};
}

}  // namespace wherry::kv
