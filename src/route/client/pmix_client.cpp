// SPDX-License-Identifier: Apache-2.0
#include "route/client/pmix_client.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/fork.hpp"
#include "base/try.hpp"

namespace wherry::route::pmix {
namespace {

/// The process that the PMIx server knows as this rank.
const ProcessMark& rank_process() {
  static const ProcessMark one;
  return one;
}

Status failed(const Library& library, const char* call, Code code) {
  return {code == kTimeout ? StatusCode::kDeadlineExceeded : StatusCode::kUnavailable,
          fmt::format("PMIx: {}: {} ({})", call, library.error_string(code), code)};
}

/// Static, because PMIx's thread may still call the handler while the process ends.
std::atomic<bool>& server_has_gone() {
  static std::atomic<bool> one{false};
  return one;
}

void on_lost_server(std::size_t /*handler*/, Code /*code*/, const Process* /*source*/, Info* /*info*/,
                    std::size_t /*infos*/, Info* /*results*/, std::size_t /*result_count*/, EventDone done,
                    void* data) {
  server_has_gone() = true;
  if (done != nullptr) done(kActionComplete, nullptr, 0, nullptr, nullptr, data);
}

void registered(Code /*code*/, std::size_t /*handler*/, void* /*data*/) {}

/// Gets one rank's contribution from the server.
Result<Bytes> contribution(const Library& library, const Process& of, const std::string& key) {
  Value* value = nullptr;
  if (const Code code = library.get(&of, key.c_str(), nullptr, 0, &value); code != kSuccess) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("PMIx: PMIx_Get of rank {}: {} ({})", of.rank, library.error_string(code), code));
  }
  Result<Bytes> result =
      Status(StatusCode::kProtocol,
             fmt::format("PMIx: rank {} has given something else: does it run another program?", of.rank));
  if (value->type == Type::kBytes && value->bytes.size != 0) {
    const ByteView view = std::as_bytes(std::span(value->bytes.bytes, value->bytes.size));
    result = Bytes(view.begin() + 1, view.end());
    std::free(value->bytes.bytes);
  }
  std::free(value);
  return result;
}

Result<std::vector<Bytes>> exchange_now(const Library& library, const Process& self, Rank ranks, const std::string& key,
                                        const Bytes& mine) {
  Value value{};
  value.type = Type::kBytes;
  std::vector<char> bytes(1 + mine.size());  // never empty, which not every server keeps
  if (!mine.empty()) std::memcpy(bytes.data() + 1, mine.data(), mine.size());
  value.bytes = {bytes.data(), bytes.size()};
  if (const Code code = library.put(kGlobal, key.c_str(), &value); code != kSuccess)
    return failed(library, "PMIx_Put", code);
  if (const Code code = library.commit(); code != kSuccess) return failed(library, "PMIx_Commit", code);
  Process all{};
  std::memcpy(all.name_space, self.name_space, sizeof all.name_space);
  all.rank = kAllRanks;
  Info collect{};
  std::strncpy(collect.key, kCollectData, sizeof collect.key - 1);
  collect.value.type = Type::kBool;
  collect.value.flag = true;
  if (const Code code = library.fence(&all, 1, &collect, 1); code != kSuccess)
    return failed(library, "PMIx_Fence", code);
  std::vector<Bytes> result;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (rank == self.rank) {
      result.push_back(mine);
      continue;
    }
    Process other = all;
    other.rank = rank;
    WHERRY_ASSIGN(auto theirs, contribution(library, other, key));
    result.push_back(std::move(theirs));
  }
  return result;
}

/// The result of a call in another thread, which may be left behind.
struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Status> status;
};

}  // namespace

Result<Client*> Client::get(const Deadline& deadline) {
  static Client* const one = new Client;  // never destroyed: calls that were left behind may still use it
  if (rank_process().inherited()) {
    return Status(StatusCode::kFailedPrecondition,
                  "PMIx: this process is a fork of a rank of the job: only that one can start a runtime");
  }
  if (!one->connected_) WHERRY_TRY(one->connect(deadline));
  if (!one->broken_) return one->broken_;
  return one;
}

Status Client::within(const Deadline& deadline, const char* late, std::function<Status()> work) {
  if (!broken_) return broken_;
  const auto outcome = std::make_shared<Outcome>();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // neither this thread nor PMIx's own takes the program's signals
  std::thread([outcome, work = std::move(work)] {
    Status status = work();
    const std::lock_guard lock(outcome->mutex);
    outcome->status = std::move(status);
    outcome->changed.notify_one();
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::unique_lock lock(outcome->mutex);
  while (!outcome->status && !deadline.passed())
    outcome->changed.wait_for(lock, std::chrono::milliseconds(deadline.left_ms(1000)));
  broken_ = outcome->status
                ? *outcome->status
                : Status(StatusCode::kDeadlineExceeded, fmt::format("PMIx: {} in time (Options::start_timeout)", late));
  return broken_;
}

Status Client::connect(const Deadline& deadline) {
  if (!broken_) return broken_;
  if (library_.init == nullptr) {
    WHERRY_ASSIGN(library_, load_library());
  }
  was_initialized_ = library_.initialized() != 0;
  struct Joined {
    Process self{};
    std::uint32_t ranks = 0;
  };
  const auto joined = std::make_shared<Joined>();
  WHERRY_TRY(within(deadline, "the server did not answer", [library = library_, joined]() -> Status {
    if (const Code code = library.init(&joined->self, nullptr, 0); code != kSuccess)
      return failed(library, "PMIx_Init", code);
    Process job = joined->self;
    job.rank = kAllRanks;
    Value* size = nullptr;
    if (const Code code = library.get(&job, kJobSize, nullptr, 0, &size); code != kSuccess)
      return failed(library, "PMIx_Get of the number of ranks", code);
    if (size->type == Type::kUint32) joined->ranks = size->uint32;
    std::free(size);
    static std::array<Code, 2> lost{kLostConnection, kLostServer};  // PMIx may look at them later
    library.register_event_handler(lost.data(), lost.size(), nullptr, 0, on_lost_server, registered, nullptr);
    return {};
  }));
  self_ = joined->self;
  ranks_ = joined->ranks;
  if (ranks_ == 0 || ranks_ > kMaxRanks || self_.rank >= ranks_) {
    return broken_ = {StatusCode::kUnavailable,
                      fmt::format("PMIx: the server says that this is rank {} of {}: want 1 to {} ranks", self_.rank,
                                  ranks_, kMaxRanks)};
  }
  connected_ = true;
  on_exit(at_exit, this);
  return {};
}

void Client::leave(const Deadline& deadline) {
  if (left_) return;
  left_ = true;
  (void)within(deadline, "the server did not answer", [library = library_]() -> Status {
    (void)library.finalize(nullptr, 0);
    return {};
  });
}

Result<std::vector<Bytes>> Client::exchange(ByteView mine, const Deadline& deadline) {
  const auto all = std::make_shared<std::vector<Bytes>>();
  WHERRY_TRY(within(deadline, "not all ranks came to the exchange",
                    [library = library_, self = self_, ranks = ranks_, key = fmt::format("wherry.{}", round_++), all,
                     mine = Bytes(mine.begin(), mine.end())]() -> Status {
                      WHERRY_ASSIGN(*all, exchange_now(library, self, ranks, key, mine));
                      return {};
                    }));
  return std::move(*all);
}

Status Client::health() noexcept {
  if (!server_has_gone()) return {};
  return {StatusCode::kUnavailable, "the PMIx server of this rank has gone: the launcher has ended"};
}

void Client::at_exit(int status, void* client) {
  Client& self = *static_cast<Client*>(client);
  if (self.left_ || rank_process().inherited()) return;
  const Deadline deadline(std::chrono::seconds(10));
  if (status == 0) {
    // Skip this while a call is in progress, because it would wait for that call. The server then sees the process end.
    if (self.broken_)
      (void)self.within(deadline, "the server did not answer", [library = self.library_]() -> Status {
        const Code code = library.finalize(nullptr, 0);
        return code == kSuccess ? Status() : failed(library, "PMIx_Finalize", code);
      });
    return;
  }
  if (self.was_initialized_) return;
  std::fflush(nullptr);
  self.broken_ = {};
  (void)self.within(deadline, "the server did not answer",
                    [library = self.library_, status, rank = self.rank()]() -> Status {
                      const std::string why = fmt::format("rank {} has exited with status {}", rank, status);
                      (void)library.abort(status, why.c_str(), nullptr, 0);
                      return {};
                    });
}

}  // namespace wherry::route::pmix
