// SPDX-License-Identifier: Apache-2.0
#include "route/client/statistics_file.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/absolute_path.hpp"
#include "base/clock.hpp"
#include "base/try.hpp"
#include "route/client/environment.hpp"
#include "route/explain.hpp"

namespace wherry::route {
namespace {

/// The CPU time of all threads of the process.
std::uint64_t cpu_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

std::string to_json(const Statistics& s) {
  static_assert(sizeof(Statistics) == 14 * 8, "write the new field, too");
  std::string text;
  const auto field = [&](const char* name, std::uint64_t value) {
    text += fmt::format(R"({}"{}": {})", text.empty() ? "{" : ", ", name, value);
  };
  field("sent", s.sent);
  field("handled", s.handled);
  field("forwarded_bytes", s.forwarded_bytes);
  field("bytes_out", s.bytes_out);
  field("bytes_in", s.bytes_in);
  field("transfers", s.transfers);
  field("flush_full", s.flush_full);
  field("flush_idle", s.flush_idle);
  field("flush_timeout", s.flush_timeout);
  field("flush_explicit", s.flush_explicit);
  field("would_block", s.would_block);
  field("backlog_bytes", s.backlog_bytes);
  field("backlog_high", s.backlog_high);
  field("blocked_ns", s.blocked_ns);
  return text + "}";
}

/// Replaces the contents of `path` with `text`. The file appears under its name only when it is complete.
Status replace_file(const std::string& path, const std::string& text) {
  const std::string unfinished = fmt::format("{}.{}", path, getpid());
  unlink(unfinished.c_str());  // left by an earlier process with this id; it may be a link, so never write through it
  std::FILE* const file = std::fopen(unfinished.c_str(), "wxe");
  const auto failed = [&](const char* verb) {
    return Status(StatusCode::kUnavailable, fmt::format("cannot {} {}: {}", verb, unfinished, std::strerror(errno)));
  };
  if (file == nullptr) return failed("create");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written && std::rename(unfinished.c_str(), path.c_str()) == 0) return {};
  Status status = failed("write");
  unlink(unfinished.c_str());
  return status;
}

}  // namespace

Result<std::unique_ptr<StatisticsFile>> StatisticsFile::open() {
  const auto directory = variable("WHERRY_STATISTICS");
  if (!directory) return std::unique_ptr<StatisticsFile>();
  if (access(directory->c_str(), W_OK | X_OK) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("WHERRY_STATISTICS is '{}': want a directory that this user may write to: {}", *directory,
                              std::strerror(errno)));
  }
  // Make the path absolute, because the program may change its directory.
  WHERRY_ASSIGN(std::string path, explain("WHERRY_STATISTICS", absolute_path(*directory)));
  return std::make_unique<StatisticsFile>(std::move(path));
}

StatisticsFile::Moment StatisticsFile::take(const Statistics& now) {
  return {now_ns(), cpu_ns(), misses_.read().value_or(0), now.blocked_ns, now.sent + now.handled};
}

Status StatisticsFile::write(const Place& place, const Statistics& statistics) {
  Moment end = take(statistics);
  if (quiet_.ns != 0 && quiet_.messages == end.messages) end = quiet_;
  const auto since = [](std::uint64_t now, std::uint64_t then) { return static_cast<double>(now - then) * 1e-9; };
  // Counts are scaled estimates, so a count may be less than an earlier one.
  const std::string count = misses_.read() ? std::to_string(end.misses - std::min(began_.misses, end.misses)) : "null";
  const std::string text = fmt::format(
      "{{\"rank\": {}, \"node\": {}, \"placement\": \"{}\", \"seconds\": {:.9f}, \"cpu_seconds\": {:.9f},\n"
      " \"blocked_seconds\": {:.9f},\n"
      " \"cache_misses\": {}, \"cache_misses_missing\": \"{}\",\n \"statistics\": {}}}\n",
      place.rank, place.topology.node_of(place.rank), to_string(place.placement), since(end.ns, began_.ns),
      since(end.cpu_ns, began_.cpu_ns), since(end.blocked_ns, began_.blocked_ns), count, misses_.missing(),
      to_json(statistics));
  return replace_file(fmt::format("{}/rank-{}.json", directory_, place.rank), text);
}

}  // namespace wherry::route
