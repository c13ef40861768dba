// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

namespace wherry::kv::sim {
namespace {

constexpr std::size_t kWhole = 24;  // bytes of the longest value that is written out
constexpr std::size_t kHead = 12;

}  // namespace

std::string_view name_of(Verb verb) noexcept {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kPut:
      return "put";
    case Verb::kPutIf:
      return "put_if";
    case Verb::kRemove:
      return "remove";
    case Verb::kRemoveIf:
      return "remove_if";
  }
  return "?";
}

std::string_view name_of(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kNoSuchKey:
      return "no_such_key";
    case Outcome::kVersionMismatch:
      return "version_mismatch";
    case Outcome::kTableFull:
      return "table_full";
    case Outcome::kUnknown:
      return "unknown";
    case Outcome::kRefused:
      return "refused";
  }
  return "?";
}

std::string text_of(ByteView value) {
  std::string text;
  const bool whole = value.size() <= kWhole;
  for (const std::byte byte : value.first(whole ? value.size() : kHead))
    fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(byte));
  if (whole) return text;
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const std::byte byte : value) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
  fmt::format_to(std::back_inserter(text), "~{}~{:016x}", value.size(), hash);
  return text;
}

std::size_t History::begin(std::uint32_t client, const Request& request, Cycles now) {
  operations_.push_back({.client = client,
                         .verb = request.verb,
                         .key = request.key,
                         .expected = request.expected,
                         .called = now,
                         .value = text_of(request.value)});
  return operations_.size() - 1;
}

void History::end(std::size_t operation, const Answer& answer, Cycles now) {
  Operation& ended = operations_[operation];
  ended.outcome = answer.outcome;
  ended.version = answer.version;
  ended.returned = now;
  if (ended.verb == Verb::kGet) ended.value = text_of(answer.value);
}

std::size_t History::count(Outcome outcome) const noexcept {
  return static_cast<std::size_t>(std::count_if(operations_.begin(), operations_.end(),
                                                [&](const Operation& one) { return one.outcome == outcome; }));
}

std::string History::to_json_lines() const {
  std::string out;
  for (const Operation& one : operations_) {
    fmt::format_to(std::back_inserter(out),
                   R"({{"client":{},"key":"{:016x}","op":"{}","value":"{}","expected":{},"call":{},"return":{},)"
                   R"("outcome":"{}","version":{}}})"
                   "\n",
                   one.client, one.key, name_of(one.verb), one.value, one.expected, one.called * kCycleNs,
                   one.outcome == Outcome::kUnknown ? "null" : std::to_string(one.returned * kCycleNs),
                   name_of(one.outcome), one.version);
  }
  return out;
}

wherry::Status History::write(const std::string& path) const {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  const std::string text = to_json_lines();
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (!written) return {StatusCode::kInvalidArgument, path + ": " + std::strerror(errno)};
  return wherry::ok_status();
}

}  // namespace wherry::kv::sim
