// SPDX-License-Identifier: Apache-2.0
#include "fabric/stream_frame.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <cstring>

namespace wherry::fabric {

Status FrameReader::filled(std::size_t bytes) {
  if (!in_body_) {
    have_ += bytes;
    if (have_ < head_.size()) return ok_status();
    have_ = 0;
    std::memcpy(&current_, head_.data(), sizeof current_);
    WHERRY_ASSIGN(auto body, sink_.on_head(current_));
    missing_ = current_.bytes;
    if (missing_ == 0) return sink_.on_frame(current_);
    if (body.empty() || body.size() > missing_) return {StatusCode::kInternal, "no room for the body of a frame"};
    rest_ = body;
    in_body_ = true;
    return ok_status();
  }
  rest_ = rest_.subspan(bytes);
  missing_ -= bytes;
  if (!rest_.empty()) return ok_status();
  if (missing_ != 0) {
    WHERRY_ASSIGN(auto part, sink_.on_part(current_, current_.bytes - missing_));
    if (part.empty() || part.size() > missing_) return {StatusCode::kInternal, "no room for the body of a frame"};
    rest_ = part;
    return ok_status();
  }
  in_body_ = false;
  return sink_.on_frame(current_);
}

Status FrameReader::feed(ByteView bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> to = wanted();
    const std::size_t n = std::min(to.size(), bytes.size());
    std::memcpy(to.data(), bytes.data(), n);
    bytes = bytes.subspan(n);
    WHERRY_TRY(filled(n));
  }
  return ok_status();
}

}  // namespace wherry::fabric
