// SPDX-License-Identifier: Apache-2.0
#include "kv/snapshot/dump.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/try.hpp"
#include "base/unfinished_file.hpp"
#include "wherry/kv.hpp"

namespace wherry::kv {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint32_t kInFlight = 256;
constexpr nanoseconds kTurn = std::chrono::milliseconds(50);

std::uint64_t unix_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

wherry::Status cancelled() { return {StatusCode::kCancelled, "interrupted: no file was written"}; }

wherry::Status file_error(const std::string& path, int error) {
  if (error == EEXIST)
    return {StatusCode::kAlreadyExists, fmt::format("{} is there already: --force replaces it", path)};
  return {error == EACCES || error == EPERM ? StatusCode::kPermissionDenied : StatusCode::kUnavailable,
          fmt::format("{}: {}", path, std::strerror(error))};
}

wherry::Status write_all(int fd, ByteView bytes, const std::string& path) {
  while (!bytes.empty()) {
    const auto wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return file_error(path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

/// Returns the key list of the first node that gives one. Of the other nodes' errors, only the last one is
/// reported.
Result<KeyListing> list(const DumpOptions& options, const Progress& progress) {
  wherry::Status why(StatusCode::kUnavailable, "the cluster has no node");
  const Deadline deadline(options.patience);
  for (const std::string& window : options.windows) {
    auto listing = list_keys(window, deadline, progress);
    if (listing || listing.status().code() == StatusCode::kCancelled) return listing;
    why = std::move(listing).status();
  }
  if (why.code() == StatusCode::kUnavailable && options.windows.size() > 1)
    return wherry::Status(why.code(), fmt::format("no node of this machine tells its keys: run this where a node runs, "
                                                  "as the user that it runs as, or root ({})",
                                                  why.message()));
  return why;
}

/// Reads many keys at a time, and passes them to the writer in their order.
class Reads {
 public:
  Reads(Client& client, const std::vector<std::uint64_t>& keys, SnapshotWriter& writer)
      : client_(client), keys_(keys), writer_(writer) {}

  wherry::Status run(const Progress& progress) {
    while (written_ < keys_.size()) {
      if (!progress("keys", written_, keys_.size())) return cancelled();
      while (posted_ < keys_.size() && posted_ - written_ < kInFlight)
        if (client_.post_get(keys_[posted_], posted_) != StatusCode::kOk)
          break;
        else
          ++posted_;
      (void)client_.wait(kTurn);
      WHERRY_TRY(take());
      WHERRY_TRY(write());
    }
    return {};
  }
  [[nodiscard]] std::uint64_t gone() const noexcept { return gone_; }

 private:
  struct Slot {
    bool ended = false, present = false;
    std::uint32_t version = 0;
    Bytes value;
  };

  wherry::Status take() {
    std::array<Completion, 64> ended;
    for (std::size_t count = client_.poll(ended); count != 0; count = client_.poll(ended)) {
      for (const Completion& one : std::span(ended).first(count)) {
        if (one.outcome != Outcome::kOk && one.outcome != Outcome::kNoSuchKey)
          return {StatusCode::kUnavailable,
                  fmt::format("key {:#x} cannot be read: {}", keys_[one.tag], to_string(one.outcome))};
        Slot& slot = slots_[one.tag % kInFlight];
        slot.ended = true;
        slot.present = one.outcome == Outcome::kOk;
        slot.version = one.version;
        slot.value.assign(one.value.begin(), one.value.end());
      }
    }
    return {};
  }

  wherry::Status write() {
    for (; written_ < posted_ && slots_[written_ % kInFlight].ended; ++written_) {
      Slot& slot = slots_[written_ % kInFlight];
      slot.ended = false;
      if (slot.present)
        WHERRY_TRY(writer_.add({.key = keys_[written_], .version = slot.version, .value = slot.value}));
      else
        ++gone_;
    }
    return {};
  }

  Client& client_;
  const std::vector<std::uint64_t>& keys_;
  SnapshotWriter& writer_;
  std::array<Slot, kInFlight> slots_;
  std::uint64_t posted_ = 0, written_ = 0, gone_ = 0;
};

}  // namespace

Result<DumpResult> dump(const DumpOptions& options, const Progress& progress) {
  const std::filesystem::path path(options.out);
  const std::string name = path.filename();
  const std::string place = path.has_parent_path() ? path.parent_path().string() : ".";
  const Fd directory(::open(place.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return file_error(place, errno);
  struct stat there{};
  // An early check, so that the user need not wait for the error. keep() makes the reliable check.
  if (!options.replace && ::fstatat(directory.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0)
    return file_error(options.out, EEXIST);
  UnfinishedFile file(directory, Unfinished::kUnnamed, 0600);
  if (file.fd() < 0) return file_error(place, errno);

  DumpResult result;
  result.head = {.began_ns = unix_ns(), .cluster = options.name};
  WHERRY_ASSIGN(const KeyListing listing, list(options, progress));
  result.head.epoch = listing.greeting.epoch;
  result.head.node = listing.greeting.node;
  result.head.source = listing.greeting.source;
  result.head.bucket_bits = static_cast<std::uint8_t>(listing.greeting.bucket_bits);
  result.listed = listing.keys.size();

  WHERRY_ASSIGN(Client client, Client::connect({.cluster = options.cluster,
                                                .lanes = 0,
                                                .operations = 2 * kInFlight,
                                                .deadline = options.patience,
                                                .connect_timeout = options.patience}));
  SnapshotWriter writer([&](ByteView bytes) { return write_all(file.fd(), bytes, options.out); });
  WHERRY_TRY(writer.begin(result.head));
  Reads reads(client, listing.keys, writer);
  WHERRY_TRY(reads.run(progress));
  WHERRY_TRY(writer.finish(unix_ns()));
  if (!progress("keys", result.listed, result.listed)) return cancelled();
  if (!(options.replace ? file.replace(name) : file.keep(name))) return file_error(options.out, errno);
  result.tail = writer.tail();
  result.gone = reads.gone();
  return result;
}

}  // namespace wherry::kv
