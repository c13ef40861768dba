// SPDX-License-Identifier: Apache-2.0
#include "kv/resp/edit_runner.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

namespace wherry::kv::resp {
namespace {

constexpr std::size_t kMetNames = std::size_t{1} << 20;

/// The answer for outcomes other than success and a version conflict.
Answer failed(Outcome outcome) {
  switch (outcome) {
    case Outcome::kTableFull:
      return Answer::error("OOM the bucket of this key is full: other keys can be written");
    case Outcome::kUnknown:
      return Answer::error("UNKNOWN not answered in time: the write takes effect once, or never; read the key");
    case Outcome::kLaneTaken:
      return Answer::error("UNKNOWN another client uses a lane of this gateway: the write took effect once, or never");
    case Outcome::kNoAnswer:
      return Answer::error("CLUSTERDOWN no node answered: nothing was changed");
    default:
      return Answer::error(fmt::format("ERR the store says: {}", to_string(outcome)));
  }
}

Answer foreign(Kept kept, const std::string& name) {
  if (kept == Kept::not_ours)
    return Answer::error("WRONGTYPE another program has written the value of this key, not this gateway");
  return Answer::error(
      fmt::format("COLLISION '{}' has the same number as another key that is stored: rename it", name));
}

Answer too_long(const Edit& edit) {
  return Answer::error(fmt::format("ERR key and value have {} bytes together; this store takes {}",
                                   edit.name.size() + edit.text.size(), kRoomBytes));
}

Answer shown(const Edit& edit, std::optional<std::string_view> text) {
  if (edit.show != nullptr) return edit.show(text);
  return text ? Answer::text(*text) : Answer::null();
}

}  // namespace

EditRunner::EditRunner(Client& client, Done done) : client_(client), done_(std::move(done)), met_(kMetNames) {}

void EditRunner::start(Edit edit, std::uint64_t owner, std::uint32_t part) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(tasks_.size()));
    tasks_.emplace_back();
  }
  const std::uint32_t i = free_.back();
  free_.pop_back();
  Task& task = tasks_[i];
  task.number = numbers_.of(edit.name);
  task.edit = std::move(edit);
  task.owner = owner;
  task.part = part;
  if (task.edit.kind == Edit::Kind::change) {
    const auto [found, first] = changing_.try_emplace(task.number);
    if (!first) return found->second.push_back(i);
  }
  begin(i);
}

void EditRunner::begin(std::uint32_t i) {
  Task& task = tasks_[i];
  if (task.edit.kind != Edit::Kind::write) {
    task.step = Step::reading;
    return post(i);
  }
  if (task.edit.name.size() + task.edit.text.size() > kRoomBytes) return finish(i, too_long(task.edit));
  task.value = stored_text(task.edit.name, task.edit.text);
  task.answer = Answer::ok();
  task.step = met(task.number) ? Step::writing : Step::creating;
  post(i);
}

void EditRunner::post(std::uint32_t i) {
  if (!waiting_.empty() || !posted(i)) waiting_.push_back(i);
}

bool EditRunner::posted(std::uint32_t i) {
  const Task& task = tasks_[i];
  StatusCode code = StatusCode::kOk;
  switch (task.step) {
    case Step::reading:
      code = client_.post_get(task.number, i);
      break;
    case Step::writing:
      code = client_.post_put(task.number, as_bytes_of(task.value), i);
      break;
    case Step::creating:
      code = client_.post_put_if(task.number, task.version, as_bytes_of(task.value), i);
      break;
    case Step::removing:
      code = client_.post_remove_if(task.number, task.version, i);
      break;
  }
  return code == StatusCode::kOk;
}

bool EditRunner::turn() {
  constexpr std::size_t kAtOnce = 64;
  std::array<Completion, kAtOnce> completions;
  bool any = false;
  for (;;) {
    const std::size_t count = client_.poll(completions);
    for (std::size_t n = 0; n < count; ++n) took(static_cast<std::uint32_t>(completions[n].tag), completions[n]);
    any = any || count != 0;
    while (!waiting_.empty() && posted(waiting_.front())) waiting_.pop_front();
    if (count < kAtOnce) return any;
  }
}

void EditRunner::took(std::uint32_t i, const Completion& completion) {
  if (tasks_[i].step == Step::reading)
    was_read(i, completion);
  else
    was_written(i, completion);
}

void EditRunner::was_read(std::uint32_t i, const Completion& completion) {
  Task& task = tasks_[i];
  if (completion.outcome != Outcome::kOk && completion.outcome != Outcome::kNoSuchKey)
    return finish(i, failed(completion.outcome));
  std::optional<std::string_view> text;
  task.version = 0;
  if (completion.outcome == Outcome::kOk) {
    text.emplace();
    if (const Kept kept = find_text(as_text(completion.value), task.edit.name, *text); kept != Kept::text)
      return finish(i, foreign(kept, task.edit.name));
    task.version = completion.version;
    met_[slot(task.number)] = task.number;
  }
  if (task.edit.kind == Edit::Kind::read) return finish(i, shown(task.edit, text));
  if (task.edit.kind == Edit::Kind::write) {
    task.step = text ? Step::writing : Step::creating;
    return post(i);
  }
  Change change = task.edit.decide(text);
  task.answer = std::move(change.answer);
  switch (change.what) {
    case Change::What::leave:
      return finish(i, std::move(task.answer));
    case Change::What::remove:
      task.step = Step::removing;
      break;
    case Change::What::write:
      if (task.edit.name.size() + change.text.size() > kRoomBytes) {
        task.edit.text = std::move(change.text);
        return finish(i, too_long(task.edit));
      }
      task.value = stored_text(task.edit.name, change.text);
      task.step = Step::creating;
      break;
  }
  post(i);
}

void EditRunner::was_written(std::uint32_t i, const Completion& completion) {
  Task& task = tasks_[i];
  switch (completion.outcome) {
    case Outcome::kOk:
      if (task.step == Step::removing)
        met_[slot(task.number)] = 0;
      else
        met_[slot(task.number)] = task.number;
      return finish(i, std::move(task.answer));
    case Outcome::kNoSuchKey:
    case Outcome::kVersionMismatch:  // somebody was faster, or the name was not met yet
      task.step = Step::reading;
      return post(i);
    default:
      return finish(i, failed(completion.outcome));
  }
}

void EditRunner::finish(std::uint32_t i, Answer answer) {
  Task& task = tasks_[i];
  const auto [owner, part, number] = std::tuple(task.owner, task.part, task.number);
  const bool changed = task.edit.kind == Edit::Kind::change;
  task = {};
  free_.push_back(i);
  if (changed) let_next_change(number);
  done_(owner, part, std::move(answer));
}

void EditRunner::let_next_change(std::uint64_t number) {
  const auto found = changing_.find(number);
  if (found->second.empty()) {
    changing_.erase(found);
    return;
  }
  const std::uint32_t next = found->second.front();
  found->second.pop_front();
  begin(next);
}

}  // namespace wherry::kv::resp
