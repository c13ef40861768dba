// SPDX-License-Identifier: Apache-2.0
#include "route/job_failure.hpp"

#include <algorithm>

namespace wherry::route {

StatusCode error_code_of(std::uint32_t number) noexcept {
  const bool error = number > static_cast<std::uint32_t>(StatusCode::kWouldBlock) &&
                     number <= static_cast<std::uint32_t>(StatusCode::kInternal);
  return error ? static_cast<StatusCode>(number) : StatusCode::kUnavailable;
}

std::string printable(std::string text) {
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }, ' ');
  return text;
}

Bytes encode(const JobFailure& failure, std::size_t max_bytes) {
  Writer out;
  out.put(static_cast<std::uint32_t>(failure.why.code()));
  out.put(failure.cause);
  Bytes bytes = std::move(out).take();
  const std::string& why = failure.why.message();
  std::size_t size = std::min(why.size(), max_bytes - bytes.size());
  const auto within_character = [&](std::size_t at) { return (static_cast<unsigned char>(why[at]) & 0xc0) == 0x80; };
  while (size != 0 && size != why.size() && within_character(size)) --size;
  const ByteView text = std::as_bytes(std::span(why.data(), size));
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

Result<JobFailure> decode_failure(ByteView bytes) {
  constexpr std::size_t kHead = 2 * sizeof(std::uint32_t);
  if (bytes.size() < kHead) return Status(StatusCode::kProtocol, "the message that ends a job is truncated");
  Reader in(bytes.first(kHead));
  const auto code = in.get<std::uint32_t>();
  const auto cause = in.get<std::uint32_t>();
  const ByteView text = bytes.subspan(kHead);
  std::string why = printable({reinterpret_cast<const char*>(text.data()), text.size()});
  return JobFailure{{error_code_of(code), std::move(why)}, cause};
}

}  // namespace wherry::route
