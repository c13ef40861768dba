// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as frames. However the bytes are divided into pieces, the frames must be the same. A body must
// not exceed its limit, and bytes must go only to the requested places.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fabric/stream_frame.hpp"

using namespace wherry;
using namespace wherry::fabric;

namespace {

constexpr std::size_t kLimit = 4096;

struct Recorder final : FrameReader::Sink {
  Result<std::span<std::byte>> on_head(const FrameHead& head) override {
    if (head.bytes > kLimit) return Status(StatusCode::kProtocol, "too long");
    body.assign(head.bytes, std::byte{0});
    return std::span<std::byte>(body);
  }
  Status on_frame(const FrameHead& head) override {
    if (head.bytes != body.size()) std::abort();
    log.insert(log.end(), reinterpret_cast<const std::byte*>(&head), reinterpret_cast<const std::byte*>(&head + 1));
    log.insert(log.end(), body.begin(), body.end());
    return ok_status();
  }
  std::vector<std::byte> body, log;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  Recorder whole, pieces;
  FrameReader one(whole), other(pieces);
  const Status s = one.feed(bytes);
  Status t;
  std::size_t step = 1 + data[0];
  for (std::size_t at = 0; at < bytes.size() && t; at += step)
    t = other.feed(bytes.subspan(at, std::min(step, bytes.size() - at)));
  if (s.code() != t.code() || whole.log != pieces.log) std::abort();
  // The frames must equal the sent ones, with no byte missing between them.
  if (whole.log.size() > bytes.size() ||
      (!whole.log.empty() && std::memcmp(whole.log.data(), bytes.data(), whole.log.size()) != 0))
    std::abort();
  return 0;
}
