// SPDX-License-Identifier: Apache-2.0
#include "fabric/stream_frame.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::fabric {

Status FrameReader::filled(std::size_t bytes) {
  if (!in_body_) {
    have_ += bytes;
    if (have_ < head_.size()) return ok_status();
    have_ = 0;
    std::memcpy(&current_, head_.data(), sizeof current_);
    auto body = sink_.on_head(current_);
    if (!body) return body.status();
    if (body->size() != current_.bytes) return {StatusCode::kInternal, "no room for the body of a frame"};
    if (body->empty()) return sink_.on_frame(current_);
    rest_ = *body;
    in_body_ = true;
    return ok_status();
  }
  rest_ = rest_.subspan(bytes);
  if (!rest_.empty()) return ok_status();
  in_body_ = false;
  return sink_.on_frame(current_);
}

Status FrameReader::feed(ByteView bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> to = wanted();
    const std::size_t n = std::min(to.size(), bytes.size());
    std::memcpy(to.data(), bytes.data(), n);
    bytes = bytes.subspan(n);
    if (Status s = filled(n); !s) return s;
  }
  return ok_status();
}

}  // namespace wherry::fabric
