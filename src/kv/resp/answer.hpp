// SPDX-License-Identifier: Apache-2.0
// Answers to Redis clients, and their form in versions 2 and 3 of the protocol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wherry::kv::resp {

struct Answer {
  enum class Kind : std::uint8_t {
    simple,  ///< a word, such as OK
    error,   ///< "CODE a sentence"
    number,
    text,  ///< any bytes
    null,
    list,
    map,  ///< names and values in turns
  };
  Kind kind = Kind::null;
  std::int64_t value = 0;
  std::string bytes;
  std::vector<Answer> parts;

  static Answer ok() { return simple("OK"); }
  static Answer simple(std::string word) { return {Kind::simple, 0, std::move(word), {}}; }
  static Answer error(std::string sentence) { return {Kind::error, 0, std::move(sentence), {}}; }
  static Answer number(std::int64_t value) { return {Kind::number, value, {}, {}}; }
  static Answer text(std::string_view bytes) { return {Kind::text, 0, std::string(bytes), {}}; }
  static Answer null() { return {}; }
  static Answer list(std::vector<Answer> parts) { return {Kind::list, 0, {}, std::move(parts)}; }
  static Answer map(std::vector<Answer> parts) { return {Kind::map, 0, {}, std::move(parts)}; }

  friend bool operator==(const Answer&, const Answer&) = default;
};

/// Appends `answer` to `out`. `protocol`: 2 or 3. Version 2 has no maps, so maps become lists.
void write(const Answer& answer, int protocol, std::string& out);

}  // namespace wherry::kv::resp
