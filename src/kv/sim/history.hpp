// SPDX-License-Identifier: Apache-2.0
// Records the clients' requests and answers for tools/linearizable: docs/project/kv-testing.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kv/message.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::sim {

enum class Verb : std::uint8_t { kGet, kPut, kPutIf, kRemove, kRemoveIf };
enum class Outcome : std::uint8_t {
  kOk,
  kNoSuchKey,
  kVersionMismatch,
  kTableFull,
  kUnknown,  ///< may have taken effect, or may yet
  kRefused,  ///< certainly had no effect, nor will have: too_long, bad_frame, bad_lane
};
[[nodiscard]] std::string_view name_of(Verb verb) noexcept;
[[nodiscard]] std::string_view name_of(Outcome outcome) noexcept;

struct Request {
  Verb verb = Verb::kGet;
  std::uint64_t key = 0;
  std::uint32_t expected = 0;  ///< by kPutIf and kRemoveIf; 0: no such key
  ByteView value;
};
struct Answer {
  Outcome outcome = Outcome::kUnknown;
  std::uint32_t version = 0;  ///< of what was read or written, or found by kVersionMismatch
  ByteView value;             ///< of kGet
};

class History {
 public:
  /// Records a call. Returns the argument for `end`. A call without an end has an unknown outcome.
  std::size_t begin(std::uint32_t client, const Request& request, Cycles now);
  void end(std::size_t operation, const Answer& answer, Cycles now);

  [[nodiscard]] std::size_t size() const noexcept { return operations_.size(); }
  [[nodiscard]] std::size_t count(Outcome outcome) const noexcept;
  [[nodiscard]] std::string to_json_lines() const;
  [[nodiscard]] wherry::Status write(const std::string& path) const;

 private:
  struct Operation {
    std::uint32_t client;
    Verb verb;
    Outcome outcome = Outcome::kUnknown;
    std::uint64_t key;
    std::uint32_t expected;
    std::uint32_t version = 0;
    Cycles called;
    Cycles returned = 0;
    std::string value;
  };
  std::vector<Operation> operations_;
};

/// A value in a history's form: hexadecimal; if long, its beginning, its length and a hash of the whole.
[[nodiscard]] std::string text_of(ByteView value);

}  // namespace wherry::kv::sim
