// SPDX-License-Identifier: Apache-2.0
#include "probe/host/ucx_pair.hpp"

#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "fabric/stream_worker.hpp"

namespace wherry::probe {
namespace {

constexpr unsigned kFirstData = 1;  // message ids: data for slot i, then the answer about it
constexpr unsigned kFirstAnswer = 100;
constexpr std::chrono::milliseconds kAlone{200};  // a get that the sleeping owner need not help with is far faster
constexpr std::chrono::seconds kPatience{10};

bool write_all(int fd, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}
bool read_all(int fd, void* data, std::size_t bytes) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::read(fd, at, bytes);
    if (count <= 0) return false;
    at += count;
    bytes -= static_cast<std::size_t>(count);
  }
  return true;
}
bool write_bytes(int fd, ByteView bytes) {
  const std::uint64_t size = bytes.size();
  return write_all(fd, &size, sizeof size) && write_all(fd, bytes.data(), bytes.size());
}
Result<Bytes> read_bytes(int fd) {
  std::uint64_t size = 0;
  constexpr std::uint64_t kMost = 1 << 20;
  if (!read_all(fd, &size, sizeof size) || size > kMost)
    return Status(StatusCode::kUnavailable, "the other process has ended; WHERRY's transports may not work here");
  Bytes bytes(size);
  if (!read_all(fd, bytes.data(), size)) return Status(StatusCode::kUnavailable, "the other process has ended");
  return bytes;
}

}  // namespace

struct UcxPair::Shared {
  Answers answers;
  alignas(64) std::atomic<bool> awake{false};
  alignas(64) std::atomic<bool> polling{false};  ///< the child makes progress
  alignas(64) std::atomic<std::uint64_t> bytes{0}, align{0};
  std::uint64_t asked = 0;  ///< of this side
};

/// The child's side of the pair.
struct UcxPair::Theirs {
  UcxPair* pair = nullptr;
  fabric::Endpoint endpoint;
  fabric::Completion done;
  struct Slot {
    Theirs* theirs = nullptr;
    unsigned number = 0;
  };
  std::array<Slot, kMostDepth> slots{};

  void lay_down(unsigned slot, ByteView data) {
    const Shared& shared = *pair->shared_;
    const Layout layout{shared.bytes.load(std::memory_order_acquire), kMostDepth,
                        static_cast<unsigned>(shared.align.load(std::memory_order_acquire))};
    if (data.size() != layout.bytes) return;  // never answered: the run says that it hangs
    std::memcpy(pair->theirs_.data().data() + layout.offset(slot), data.data(), data.size());
    const std::byte word{1};
    (void)endpoint.send(kFirstAnswer + slot, {&word, 1}, done);
  }
};

Result<std::shared_ptr<UcxPair>> UcxPair::of(Transport transport) {
  static std::map<Transport, std::weak_ptr<UcxPair>> pairs;  // paths are opened by one thread
  if (auto pair = pairs[transport].lock(); pair && !pair->broken_) return pair;
  auto pair = std::make_shared<UcxPair>();
  WHERRY_TRY(pair->make(transport));
  pairs[transport] = pair;
  return pair;
}

UcxPair::~UcxPair() {
  child_.stop();
  remote_ = {};
  endpoint_ = {};
}

Status UcxPair::make(Transport transport) {
  WHERRY_ASSIGN(mine_, Mapping::make(kArenaBytes, Mapping::Kind::kPrivate));
  WHERRY_ASSIGN(theirs_, Mapping::make(kArenaBytes, Mapping::Kind::kShared));
  WHERRY_ASSIGN(shared_memory_, Mapping::make(sizeof(Shared), Mapping::Kind::kShared));
  shared_ = new (shared_memory_.data().data()) Shared;
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return {StatusCode::kResourceExhausted, fmt::format("no Unix socket: {}", std::strerror(errno))};
  control_ = Fd(ends[0]), childs_control_ = Fd(ends[1]);
  WHERRY_ASSIGN(child_, Child::start([&] { serve(transport); }));
  childs_control_.reset();  // so that its end is seen here

  WHERRY_ASSIGN(context_, fabric::Context::create(transport));
  WHERRY_ASSIGN(worker_, fabric::Worker::create(context_));
  if (transport == Transport::kTcp) WHERRY_TRY(worker_->listen({.listen = "lo"}));
  for (unsigned i = 0; i < kMostDepth; ++i) {
    slots_[i] = {this, i};
    WHERRY_TRY(worker_->on_message(
        kFirstAnswer + i,
        [](void* context, ByteView /*data*/) {
          const auto* slot = static_cast<Slot*>(context);
          ++slot->pair->answered_[slot->number];
        },
        &slots_[i]));
  }
  if (!write_bytes(control_.get(), worker_->address()))
    return {StatusCode::kUnavailable, "the other process has ended at once"};
  WHERRY_ASSIGN(const Bytes address, read_bytes(control_.get()));
  WHERRY_ASSIGN(endpoint_, fabric::Endpoint::connect(*worker_, address, "the other process"));
  WHERRY_ASSIGN(const Bytes key, read_bytes(control_.get()));
  // A fork keeps addresses, so the child's arena has the address that it has in this process.
  WHERRY_ASSIGN(remote_, endpoint_.unpack(key, reinterpret_cast<std::uint64_t>(theirs_.data().data()), kArenaBytes,
                                          child_.pid()));
  WHERRY_ASSIGN(local_, context_->register_memory(mine_.data().data(), mine_.data().size()));
  return find_whether_one_sided();
}

Status UcxPair::find_whether_one_sided() {
  fabric::Completion done;
  constexpr std::size_t kBytes = 4096;
  WHERRY_TRY(endpoint_.get(mine_.data().data(), local_, remote_, remote_.base(), kBytes, done));
  for (const Deadline alone(kAlone); done.pending() > 0 && !alone.passed();) worker_->progress();
  one_sided_ = done.pending() == 0 && done.error() == nullptr;
  wake();
  for (const Deadline helped(kPatience); done.pending() > 0 && !helped.passed();) worker_->progress();
  sleep();
  if (done.pending() == 0 && done.error() == nullptr) return ok_status();
  const std::string why = done.error() != nullptr ? done.error() : "no answer";
  endpoint_ = {};  // cancels what is under way: `done` goes
  return {StatusCode::kUnavailable, fmt::format("a get between two processes of this machine: {}", why)};
}

void UcxPair::serve(Transport transport) {
  const int control = childs_control_.get();
  control_.reset();
  auto context = fabric::Context::create(transport);
  if (!context) return;
  auto worker = fabric::Worker::create(*context);
  if (!worker) return;
  Theirs theirs;
  theirs.pair = this;
  for (unsigned i = 0; i < kMostDepth; ++i) {
    theirs.slots[i] = {&theirs, i};
    const Status known = (*worker)->on_message(
        kFirstData + i,
        [](void* of, ByteView data) {
          const auto* slot = static_cast<Theirs::Slot*>(of);
          slot->theirs->lay_down(slot->number, data);
        },
        &theirs.slots[i]);
    if (!known) return;
  }
  if (transport == Transport::kTcp) {
    if (!(*worker)->listen({.listen = "lo"})) return;
    (*worker)->stream()->offer_memory(true);
    (*worker)->stream()->accept_puts(reinterpret_cast<std::uint64_t>(theirs_.data().data()), theirs_.data().size());
  }
  const auto peer = read_bytes(control);
  if (!peer || !write_bytes(control, (*worker)->address())) return;
  auto endpoint = fabric::Endpoint::connect(**worker, *peer, "the measuring process");
  auto region = (*context)->register_memory(theirs_.data().data(), theirs_.data().size());
  Bytes key;
  if (!endpoint || !region || !region->pack_key(key) || !write_bytes(control, key)) return;
  theirs.endpoint = *std::move(endpoint);
  for (char command = 0; read_all(control, &command, 1);) {
    if (command == 'r') shared_->answers.report();
    shared_->answers.done();
    std::uint64_t idle = 0;
    while (shared_->awake.load(std::memory_order_acquire)) {
      shared_->polling.store(true, std::memory_order_release);
      if ((*worker)->progress() == 0) spin(idle);
    }
    shared_->polling.store(false, std::memory_order_release);
  }
  _exit(0);  // what is registered and connected goes with the process
}

void UcxPair::cancel() noexcept {
  broken_ = true;
  remote_ = {};
  endpoint_ = {};
}

void UcxPair::set_layout(const Layout& layout) noexcept {
  shared_->align.store(layout.align, std::memory_order_release);
  shared_->bytes.store(layout.bytes, std::memory_order_release);
}

void UcxPair::wake() noexcept {
  if (awake_) return;
  awake_ = true;
  shared_->awake.store(true, std::memory_order_release);
  if (!write_all(control_.get(), "w", 1)) return;
  ++shared_->asked;
  std::uint64_t count = 0;
  const Deadline deadline(kPatience);
  while (!shared_->polling.load(std::memory_order_acquire)) {
    spin(count);
    if (count % 65536 == 0 && (deadline.passed() || !child_.alive())) return;
  }
}

void UcxPair::sleep() noexcept {
  awake_ = false;
  shared_->awake.store(false, std::memory_order_release);
}

Path::CpuTime UcxPair::other_side() noexcept {
  // The child reads its socket only while it sleeps.
  const bool awake = awake_;
  sleep();
  if (!write_all(control_.get(), "r", 1)) return {};
  ++shared_->asked;
  std::uint64_t count = 0;
  const Deadline deadline(kPatience);
  while (shared_->answers.given.load(std::memory_order_acquire) < shared_->asked) {
    spin(count);
    if (count % 65536 == 0 && (deadline.passed() || !child_.alive())) return {};
  }
  const Path::CpuTime time{shared_->answers.user_ns, shared_->answers.system_ns};
  if (awake) wake();
  return time;
}

}  // namespace wherry::probe
