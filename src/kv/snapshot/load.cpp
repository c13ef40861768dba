// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/load.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.hpp"
#include "base/try.hpp"
#include "kv/generated/frame.hpp"
#include "wherry/kv.hpp"

namespace wherry::kv {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kLoadTurn = std::chrono::milliseconds(50);
constexpr std::size_t kNamed = 3;  ///< keys without room that are told

Result<Fd> open_file(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd) return fd;
  const StatusCode code = errno == ENOENT   ? StatusCode::kNotFound
                          : errno == EACCES ? StatusCode::kPermissionDenied
                                            : StatusCode::kUnavailable;
  return wherry::Status(code, fmt::format("{}: {}", path, std::strerror(errno)));
}

SnapshotReader::Source source_of(const Fd& fd) {
  return [handle = fd.get()](std::span<std::byte> to) -> Result<std::size_t> {
    for (;;) {
      const auto got = ::read(handle, to.data(), to.size());
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR) return wherry::Status(StatusCode::kUnavailable, std::strerror(errno));
    }
  };
}

wherry::Status of_file(const std::string& path, const wherry::Status& why) {
  return {why.code(), fmt::format("{}: {}", path, why.message())};
}

/// Writes many records at a time, and repeats each until its outcome is known.
class Writes {
 public:
  Writes(Client& client, const LoadOptions& options, LoadResult& result)
      : client_(client), options_(options), result_(result), slots_(options.lanes), heard_(now_ns()) {
    for (std::uint32_t i = options.lanes; i > 0; --i) free_.push_back(i - 1);
  }

  wherry::Status write(const SnapshotRecord& record) {
    while (free_.empty()) WHERRY_TRY(turn());
    const std::uint32_t slot = free_.back();
    slots_[slot] = {.key = record.key, .value = Bytes(record.value.begin(), record.value.end()), .unsure = false};
    free_.pop_back();
    waiting_.push_back(slot);
    return post();
  }
  wherry::Status finish() {
    while (free_.size() < slots_.size()) WHERRY_TRY(turn());
    return {};
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Bytes value;
    bool unsure = false;  ///< a try of it may have taken effect
  };

  wherry::Status post() {
    while (!waiting_.empty()) {
      const std::uint32_t index = waiting_.back();
      const Slot& slot = slots_[index];
      const StatusCode code = options_.overwrite ? client_.post_put(slot.key, slot.value, index)
                                                 : client_.post_put_if(slot.key, 0, slot.value, index);
      if (code == StatusCode::kWouldBlock) return {};
      if (code != StatusCode::kOk) return {code, "the client takes no writes"};
      waiting_.pop_back();
    }
    return {};
  }

  wherry::Status turn() {
    WHERRY_TRY(post());
    (void)client_.wait(kLoadTurn);
    std::array<Completion, 64> ended;
    const std::size_t count = client_.poll(ended);
    // The values of completions are not used, so end() may read in between.
    for (const Completion& one : std::span(ended).first(count)) WHERRY_TRY(end(one));
    return {};
  }

  wherry::Status end(const Completion& one) {
    const auto index = static_cast<std::uint32_t>(one.tag);
    Slot& slot = slots_[index];
    switch (one.outcome) {
      case Outcome::kOk:
        ++result_.loaded;
        break;
      case Outcome::kVersionMismatch:
        if (!slot.unsure) {
          ++result_.skipped;
          break;
        }
        questions_.push_back(index);
        return ask();
      case Outcome::kTableFull:
        ++result_.no_room;
        if (result_.without_room.size() < kNamed) result_.without_room.push_back(slot.key);
        break;
      case Outcome::kUnknown:
      case Outcome::kNoAnswer:
      case Outcome::kLaneTaken:
        if (now_ns() - heard_ > static_cast<std::uint64_t>(options_.patience.count()))
          return {StatusCode::kUnavailable, "the cluster does not answer"};
        slot.unsure = slot.unsure || one.outcome != Outcome::kNoAnswer;
        waiting_.push_back(index);
        return {};
      default:
        return {status_code(one.outcome), fmt::format("key {:#x}: {}", slot.key, to_string(one.outcome))};
    }
    free_.push_back(index);
    heard_ = now_ns();
    return {};
  }

  /// A key that should be absent exists after a try with an unknown outcome. If it has our value, we wrote it.
  wherry::Status ask() {
    while (!questions_.empty()) {
      const std::uint32_t index = questions_.back();
      questions_.pop_back();
      const Reply found = client_.get(slots_[index].key, options_.patience);
      if (found.outcome != Outcome::kOk && found.outcome != Outcome::kNoSuchKey) return found.status();
      const bool ours = found.outcome == Outcome::kOk && std::ranges::equal(found.value, slots_[index].value);
      ++(ours ? result_.loaded : result_.skipped);
      free_.push_back(index);
    }
    return {};
  }

  Client& client_;
  const LoadOptions& options_;
  LoadResult& result_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_, waiting_, questions_;
  std::uint64_t heard_;  ///< when the end of anything was last known
};

wherry::Status write_records(SnapshotReader& reader, Client& client, const LoadOptions& options, LoadResult& result,
                             const Progress& progress) {
  Writes writes(client, options, result);
  for (std::uint64_t asked = 0;;) {
    WHERRY_ASSIGN(const auto records, reader.next());
    if (records.empty()) break;
    for (const SnapshotRecord& record : records) {
      if (!progress("keys", asked++, result.content.tail.records)) {
        WHERRY_TRY(writes.finish());
        return {StatusCode::kCancelled, "interrupted"};
      }
      WHERRY_TRY(writes.write(record));
    }
  }
  return writes.finish();
}

Result<SnapshotContent> check_open(const Fd& fd, const std::string& path, const Progress& progress) {
  auto reader = SnapshotReader::open(source_of(fd));
  if (!reader) return of_file(path, reader.status());
  for (;;) {
    if (!progress("bytes", reader->at(), 0)) return wherry::Status(StatusCode::kCancelled, "interrupted");
    const auto records = reader->next();
    if (!records) return of_file(path, records.status());
    if (records->empty()) return SnapshotContent{reader->head(), reader->tail()};
  }
}

}  // namespace

Result<SnapshotContent> check_snapshot(const std::string& path, const Progress& progress) {
  WHERRY_ASSIGN(const Fd fd, open_file(path));
  return check_open(fd, path, progress);
}

Result<LoadResult> load(const LoadOptions& options, const Progress& progress) {
  LoadResult result;
  WHERRY_ASSIGN(const Fd fd, open_file(options.file));
  WHERRY_ASSIGN(result.content, check_open(fd, options.file, progress));
  const std::uint64_t room = std::uint64_t{kWays} << options.bucket_bits;
  if (result.content.tail.records > room)
    return wherry::Status(StatusCode::kResourceExhausted,
                          fmt::format("{} has {} keys, and this cluster room for {} at most (bucket_bits {}; the "
                                      "snapshot's had {}): nothing was loaded",
                                      options.file, result.content.tail.records, room, options.bucket_bits,
                                      result.content.head.bucket_bits));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0)
    return wherry::Status(StatusCode::kInvalidArgument,
                          fmt::format("{} must be a file that can be read twice", options.file));
  WHERRY_ASSIGN(Client client, Client::connect({.cluster = options.cluster,
                                                .first_lane = options.first_lane,
                                                .lanes = options.lanes,
                                                .operations = 2 * std::bit_ceil(std::max(options.lanes, 2U)),
                                                .connect_timeout = options.patience}));
  auto reader = SnapshotReader::open(source_of(fd));
  if (!reader) return of_file(options.file, reader.status());
  result.end = write_records(*reader, client, options, result, progress);
  return result;
}

}  // namespace wherry::kv
