// SPDX-License-Identifier: Apache-2.0
// Runs edits of many names concurrently, with one client of the store.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "kv/resp/edit.hpp"
#include "kv/resp/stored_text.hpp"
#include "wherry/kv.hpp"

namespace wherry::kv::resp {

/// One thread. A write of a name that this runner has met needs one request. Two names may have one key. So the first
/// try for an unknown name succeeds only if the key does not exist. If there is a value, it is read and compared.
/// Changes of one name wait for each other here, and retry if another gateway was faster.
class EditRunner {
 public:
  /// `done(owner, part, answer)` is called when the edit that was started with these values has ended.
  using Done = std::function<void(std::uint64_t owner, std::uint32_t part, Answer answer)>;

  EditRunner(Client& client, Done done);

  /// An edit that cannot be stored may be done before start() returns.
  void start(Edit edit, std::uint64_t owner, std::uint32_t part);
  /// Sends, receives, and reports finished edits; a report may start others. True: there was work.
  bool turn();
  [[nodiscard]] std::size_t running() const noexcept { return tasks_.size() - free_.size(); }

 private:
  enum class Step : std::uint8_t { reading, writing, creating, removing };
  struct Task {
    Edit edit;
    std::uint64_t number = 0;
    std::uint64_t owner = 0;
    std::uint32_t part = 0;
    std::uint32_t version = 0;  ///< that was read; 0: there is no such key
    Step step = Step::reading;
    std::string value;  ///< to be written
    Answer answer;      ///< once that is done
  };

  void begin(std::uint32_t task);
  void post(std::uint32_t task);
  [[nodiscard]] bool posted(std::uint32_t task);  ///< false: the client has no room
  void took(std::uint32_t task, const Completion& completion);
  void was_read(std::uint32_t task, const Completion& completion);
  void was_written(std::uint32_t task, const Completion& completion);
  void finish(std::uint32_t task, Answer answer);
  void let_next_change(std::uint64_t number);
  [[nodiscard]] bool met(std::uint64_t number) const noexcept { return met_[slot(number)] == number; }
  [[nodiscard]] std::size_t slot(std::uint64_t number) const noexcept { return number % met_.size(); }

  Client& client_;
  Done done_;
  KeyNumbers numbers_;
  std::vector<Task> tasks_;
  std::vector<std::uint32_t> free_;
  std::deque<std::uint32_t> waiting_;  ///< for room in the client
  /// Names whose text was read from their number or written to it. The index is derived from the number, so other
  /// numbers may replace it.
  std::vector<std::uint64_t> met_;
  /// Numbers with a change in progress, and the changes that wait for it.
  std::unordered_map<std::uint64_t, std::deque<std::uint32_t>> changing_;
};

}  // namespace wherry::kv::resp
