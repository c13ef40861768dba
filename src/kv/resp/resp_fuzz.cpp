// SPDX-License-Identifier: Apache-2.0
// Uses arbitrary bytes as a client's requests (whole and cut in two), as a stored value, and as texts for the functions
// that decide an edit. Every answer must be one complete answer of the protocol.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "kv/resp/command.hpp"
#include "kv/resp/request_parser.hpp"
#include "kv/resp/stored_text.hpp"

using namespace wherry::kv::resp;

namespace {

void check(bool holds) {
  if (!holds) std::abort();
}

/// The end of the answer that begins at `at`.
std::size_t end_of(const std::string& out, std::size_t at) {
  const std::size_t line = out.find("\r\n", at);
  check(line != std::string::npos);
  const auto count = [&] { return static_cast<std::size_t>(std::stol(out.substr(at + 1, line - at - 1))); };
  std::size_t end = line + 2;
  switch (out[at]) {
    case '+':
    case '-':
    case ':':
    case '_':
      return end;
    case '$':
      return out.compare(at, 3, "$-1") == 0 ? end : end + count() + 2;
    case '*':
    case '%': {
      const std::size_t parts = count() * (out[at] == '%' ? 2 : 1);
      for (std::size_t i = 0; i < parts; ++i) end = end_of(out, end);
      return end;
    }
    default:
      check(false);
  }
  return end;
}

void take(const Answer& answer) {
  for (const int protocol : {2, 3}) {
    std::string out;
    write(answer, protocol, out);
    check(end_of(out, 0) == out.size());
  }
}

void take(const Plan& what) {
  if (what.edits.empty()) return take(what.answer);
  std::vector<Answer> answers;
  for (const Edit& edit : what.edits) {
    if (edit.kind == Edit::Kind::change) {
      for (const char* const text : {"", "7", "9223372036854775807", "a text\r\n with lines"}) {
        take(edit.decide(text).answer);
        take(edit.decide(std::nullopt).answer);
      }
    }
    answers.push_back(edit.show != nullptr ? edit.show(std::nullopt) : Answer::number(1));
  }
  take(join(what.join, std::move(answers)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  std::string_view rest = all, text;
  if (find_text(all, "name", text) == Kept::text) check(stored_text("name", text) == all);
  std::vector<std::string_view> words, again;
  for (;;) {
    const auto bytes = parse_request(rest, words);
    if (!bytes || *bytes == 0) break;
    check(*bytes <= rest.size());
    // With one byte less, a request is incomplete; the bytes after a request do not change it.
    const auto less = parse_request(rest.substr(0, *bytes - 1), again);
    check(!less || *less == 0);
    const auto exact = parse_request(rest.substr(0, *bytes), again);
    check(exact.ok() && *exact == *bytes && std::ranges::equal(words, again));
    if (!words.empty()) take(plan(words, {.key_by_key = true}));
    rest.remove_prefix(*bytes);
  }
  return 0;
}
