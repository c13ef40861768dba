// SPDX-License-Identifier: Apache-2.0
#include "kv/resp/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace wherry::kv::resp {
namespace {

constexpr std::string_view kLineEnd = "\r\n";

/// In the protocol, a line ends at the first line end, even inside a quoted error text.
void write_line(char mark, std::string_view text, std::string& out) {
  out += mark;
  std::ranges::transform(text, std::back_inserter(out), [](char c) { return c == '\r' || c == '\n' ? ' ' : c; });
  out += kLineEnd;
}

void write_count(char mark, std::size_t count, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}{}\r\n", mark, count);
}

}  // namespace

void write(const Answer& answer, int protocol, std::string& out) {
  using Kind = Answer::Kind;
  switch (answer.kind) {
    case Kind::simple:
      return write_line('+', answer.bytes, out);
    case Kind::error:
      return write_line('-', answer.bytes, out);
    case Kind::number:
      fmt::format_to(std::back_inserter(out), ":{}\r\n", answer.value);
      return;
    case Kind::text:
      write_count('$', answer.bytes.size(), out);
      out += answer.bytes;
      out += kLineEnd;
      return;
    case Kind::null:
      out += protocol >= 3 ? "_\r\n" : "$-1\r\n";
      return;
    case Kind::list:
    case Kind::map:
      if (answer.kind == Kind::map && protocol >= 3)
        write_count('%', answer.parts.size() / 2, out);
      else
        write_count('*', answer.parts.size(), out);
      for (const Answer& part : answer.parts) write(part, protocol, out);
      return;
  }
}

}  // namespace wherry::kv::resp
