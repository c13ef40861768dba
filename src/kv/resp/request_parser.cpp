// SPDX-License-Identifier: Apache-2.0
#include "kv/resp/request_parser.hpp"

#include <charconv>
#include <cstdint>

#include "base/try.hpp"

namespace wherry::kv::resp {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
constexpr std::size_t kMaxNumberBytes = 32;  // a longer line holds no number

wherry::Status protocol_error(const char* what) { return {StatusCode::kProtocol, what}; }

/// Takes one "<number>\r\n" from the front of `rest`. False: it is not complete yet.
Result<bool> take_number(std::string_view& rest, std::int64_t& number, const char* wrong) {
  const std::size_t end = rest.find(kEndOfLine);
  if (end == std::string_view::npos) {
    if (rest.size() > kMaxNumberBytes) return protocol_error(wrong);
    return false;
  }
  const auto [stopped, error] = std::from_chars(rest.data(), rest.data() + end, number);
  if (error != std::errc() || stopped != rest.data() + end) return protocol_error(wrong);
  rest.remove_prefix(end + kEndOfLine.size());
  return true;
}

Result<std::size_t> parse_array(std::string_view input, std::vector<std::string_view>& arguments) {
  std::string_view rest = input.substr(1);
  std::int64_t count = 0;
  WHERRY_ASSIGN(const bool counted, take_number(rest, count, "invalid multibulk length"));
  if (!counted) return std::size_t{0};
  if (count > static_cast<std::int64_t>(kMaxArguments)) return protocol_error("invalid multibulk length");
  for (std::int64_t i = 0; i < count; ++i) {
    if (rest.empty()) return std::size_t{0};
    if (rest.front() != '$') return protocol_error("expected '$'");
    rest.remove_prefix(1);
    std::int64_t length = 0;
    WHERRY_ASSIGN(const bool told, take_number(rest, length, "invalid bulk length"));
    if (!told) return std::size_t{0};
    if (length < 0 || length > static_cast<std::int64_t>(kMaxRequestBytes))
      return protocol_error("invalid bulk length");
    const auto bytes = static_cast<std::size_t>(length);
    if (rest.size() < bytes + kEndOfLine.size()) return std::size_t{0};
    if (rest.substr(bytes, kEndOfLine.size()) != kEndOfLine) return protocol_error("a bulk string has another length");
    arguments.push_back(rest.substr(0, bytes));
    rest.remove_prefix(bytes + kEndOfLine.size());
  }
  return input.size() - rest.size();
}

Result<std::size_t> parse_line(std::string_view input, std::vector<std::string_view>& arguments) {
  const std::size_t end = input.find('\n');
  if (end == std::string_view::npos) return std::size_t{0};
  std::string_view line = input.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  constexpr std::string_view kBlank = " \t";
  for (std::size_t from = line.find_first_not_of(kBlank); from != std::string_view::npos;) {
    const std::size_t to = std::min(line.find_first_of(kBlank, from), line.size());
    const std::string_view word = line.substr(from, to - from);
    if (word.find_first_of("\"'") != std::string_view::npos)
      return protocol_error("a line of words has no quotes here");
    if (arguments.size() == kMaxArguments) return protocol_error("too many words in a line");
    arguments.push_back(word);
    from = line.find_first_not_of(kBlank, to);
  }
  return end + 1;
}

}  // namespace

Result<std::size_t> parse_request(std::string_view input, std::vector<std::string_view>& arguments) {
  arguments.clear();
  if (input.empty()) return std::size_t{0};
  WHERRY_ASSIGN(const std::size_t bytes,
                input.front() == '*' ? parse_array(input, arguments) : parse_line(input, arguments));
  if (bytes == 0 && input.size() > kMaxRequestBytes) return protocol_error("too big a request");
  return bytes;
}

}  // namespace wherry::kv::resp
