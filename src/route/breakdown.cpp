// SPDX-License-Identifier: Apache-2.0
#include "route/breakdown.hpp"

#include <algorithm>
#include <string>

namespace wherry::route {

StatusCode error_code_of(std::uint32_t number) noexcept {
  const bool error = number > static_cast<std::uint32_t>(StatusCode::kWouldBlock) &&
                     number <= static_cast<std::uint32_t>(StatusCode::kInternal);
  return error ? static_cast<StatusCode>(number) : StatusCode::kUnavailable;
}

Bytes encode(const Breakdown& breakdown, std::size_t most) {
  Writer out;
  out.put(static_cast<std::uint32_t>(breakdown.why.code()));
  out.put(breakdown.cause);
  Bytes bytes = std::move(out).take();
  const std::string& why = breakdown.why.message();
  std::size_t size = std::min(why.size(), most - bytes.size());
  const auto goes_on = [&](std::size_t at) { return (static_cast<unsigned char>(why[at]) & 0xc0) == 0x80; };
  while (size != 0 && size != why.size() && goes_on(size)) --size;
  const ByteView text = std::as_bytes(std::span(why.data(), size));
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

Result<Breakdown> decode_breakdown(ByteView bytes) {
  constexpr std::size_t kHead = 2 * sizeof(std::uint32_t);
  if (bytes.size() < kHead) return Status(StatusCode::kProtocol, "the message that ends a job is cut short");
  Reader in(bytes.first(kHead));
  const auto code = in.get<std::uint32_t>();
  const auto cause = in.get<std::uint32_t>();
  const ByteView text = bytes.subspan(kHead);
  std::string why(reinterpret_cast<const char*>(text.data()), text.size());
  std::ranges::replace_if(why, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return Breakdown{{error_code_of(code), std::move(why)}, cause};
}

}  // namespace wherry::route
