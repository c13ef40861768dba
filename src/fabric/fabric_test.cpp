// SPDX-License-Identifier: Apache-2.0
// The memory belongs to another process, which sleeps in read(2) and makes no progress calls. So an operation that
// completes is one-sided.
#include "fabric/fabric.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/clock.hpp"
#include "base/free_memory.hpp"
#include "fabric/stream_worker.hpp"

namespace wherry::fabric {
namespace {

constexpr std::size_t kBytes = 4 << 20;

void write_all(int fd, const void* data, std::size_t n) { ASSERT_EQ(::write(fd, data, n), static_cast<ssize_t>(n)); }
bool read_all(int fd, void* data, std::size_t n) {
  auto* at = static_cast<char*>(data);
  while (n > 0) {
    const ssize_t k = ::read(fd, at, n);
    if (k <= 0) return false;
    at += k;
    n -= static_cast<std::size_t>(k);
  }
  return true;
}
void write_bytes(int fd, const Bytes& b) {
  const std::uint64_t n = b.size();
  write_all(fd, &n, sizeof n);
  write_all(fd, b.data(), n);
}
Bytes read_bytes(int fd) {
  std::uint64_t n = 0;
  if (!read_all(fd, &n, sizeof n)) return {};
  Bytes b(n);
  return read_all(fd, b.data(), n) ? b : Bytes();
}

/// A process that owns memory, reports its address and key, and sleeps until the test lets it continue.
class Owner {
 public:
  Owner(Transport transport, bool progress) {
    EXPECT_EQ(pipe(to_), 0);
    EXPECT_EQ(pipe(from_), 0);
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves nobody behind
    run(transport, progress);
    _exit(0);
  }
  ~Owner() {
    write_all(to_[1], "q", 1);
    int how = 0;
    waitpid(pid_, &how, 0);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    for (const int fd : {to_[0], to_[1], from_[0], from_[1]}) ::close(fd);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  Bytes address() { return read_bytes(from_[0]); }
  void connect(const Bytes& mine) { write_bytes(to_[1], mine); }
  RemoteKey key() {
    RemoteKey key;
    read_all(from_[0], &key.base, sizeof key.base);
    read_all(from_[0], &key.size, sizeof key.size);
    key.key = read_bytes(from_[0]);
    return key;
  }
  std::uint64_t word_at_base() {
    write_all(to_[1], "w", 1);
    std::uint64_t word = 0;
    read_all(from_[0], &word, sizeof word);
    return word;
  }
  void unmap_heap() {
    write_all(to_[1], "u", 1);
    char done = 0;
    read_all(from_[0], &done, 1);
  }

 private:
  void run(Transport transport, bool progress) {
    auto context = Context::create(transport);
    if (!context) _exit(2);
    auto worker = Worker::create(*context);
    if (!worker) _exit(3);
    if (transport == Transport::kTcp) {
      if (!(*worker)->listen({.listen = "lo"})) _exit(7);
      (*worker)->stream()->offer_memory(true);
    }
    write_bytes(from_[1], (*worker)->address());
    const Bytes peer = read_bytes(to_[0]);
    auto endpoint = Endpoint::connect(**worker, peer);
    if (!endpoint) _exit(4);
    auto* heap =
        static_cast<std::byte*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::memset(heap, 0x5a, kBytes);
    auto registered = (*context)->register_memory(heap, kBytes);
    auto allocated = (*context)->allocate(kBytes);
    if (!registered || !allocated) _exit(5);
    std::memset(allocated->data(), 0x7b, kBytes);
    for (const Region* region : {&*registered, &*allocated}) {
      const auto base = reinterpret_cast<std::uint64_t>(region->data());
      const std::uint64_t size = region->size();
      Bytes key;
      if (!region->pack_key(key)) _exit(6);
      write_all(from_[1], &base, sizeof base);
      write_all(from_[1], &size, sizeof size);
      write_bytes(from_[1], key);
    }
    for (;;) {
      char command = 0;
      if (progress) {
        // With emulated gets, the owner makes progress, and reads its pipe from time to time.
        for (int i = 0; i < 1000; ++i) (*worker)->progress();
        fd_set set;
        FD_ZERO(&set);
        FD_SET(to_[0], &set);
        timeval none{0, 0};
        if (select(to_[0] + 1, &set, nullptr, nullptr, &none) == 0) continue;
      }
      if (!read_all(to_[0], &command, 1) || command == 'q') break;
      if (command == 'w') {
        std::uint64_t word = 0;
        std::memcpy(&word, heap, sizeof word);
        write_all(from_[1], &word, sizeof word);
      }
      if (command == 'u') {
        munmap(heap, kBytes);
        write_all(from_[1], "d", 1);
      }
    }
    // The memory and its registrations end with the process, after the test has made its checks.
    _exit(0);
  }

  pid_t pid_ = -1;
  int to_[2] = {-1, -1};
  int from_[2] = {-1, -1};
};

/// Makes progress on this side only, for at most `ms`. Returns whether `done` completed.
bool finishes(Worker& worker, Completion& done, int ms) {
  const Deadline deadline{std::chrono::milliseconds(ms)};
  while (done.pending() != 0 && !deadline.passed()) worker.progress();
  return done.pending() == 0;
}

struct Peer {
  std::shared_ptr<Context> context;
  std::unique_ptr<Worker> worker;
  Endpoint endpoint;
  RemoteKey heap_key, allocated_key;
  RemoteRegion heap, allocated;
  Bytes memory = Bytes(kBytes);
  Region local;

  void open(Owner& owner, Transport transport) {
    auto c = Context::create(transport);
    ASSERT_TRUE(c) << c.status().message();
    context = *c;
    worker = *Worker::create(context);
    if (transport == Transport::kTcp) {
      ASSERT_TRUE(worker->listen({.listen = "lo"}));
    }
    owner.connect(worker->address());
    const Bytes address = owner_address;
    auto e = Endpoint::connect(*worker, address);
    ASSERT_TRUE(e) << e.status().message();
    endpoint = *std::move(e);
    heap_key = owner.key();
    allocated_key = owner.key();
    heap = *endpoint.unpack(heap_key.key, heap_key.base, heap_key.size, owner.pid());
    allocated = *endpoint.unpack(allocated_key.key, allocated_key.base, allocated_key.size, owner.pid());
    local = *context->register_memory(memory.data(), memory.size());
  }
  Bytes owner_address;
};

TEST(OneSided, GetCompletesWhileTheOwnerSleeps) {
  Owner owner(Transport::kShm, false);
  Peer peer;
  peer.owner_address = owner.address();
  ASSERT_NO_FATAL_FAILURE(peer.open(owner, Transport::kShm));
  Completion done;
  ASSERT_TRUE(peer.endpoint.get(peer.memory.data(), peer.local, peer.heap, peer.heap.base(), kBytes, done));
  ASSERT_TRUE(finishes(*peer.worker, done, 2000)) << "a get of ordinary heap memory needs the owner's help here";
  EXPECT_EQ(done.error(), nullptr);
  EXPECT_EQ(peer.memory, Bytes(kBytes, std::byte{0x5a}));
  ASSERT_TRUE(peer.endpoint.get(peer.memory.data(), peer.local, peer.allocated, peer.allocated.base(), kBytes, done));
  ASSERT_TRUE(finishes(*peer.worker, done, 2000))
      << "a get of memory that Wherry allocated needs the owner's help here";
  EXPECT_EQ(peer.memory, Bytes(kBytes, std::byte{0x7b}));
  EXPECT_NE(peer.endpoint.transports().find("cma"), std::string::npos);
}

TEST(OneSided, PutCompletesWhileTheOwnerSleeps) {
  Owner owner(Transport::kShm, false);
  Peer peer;
  peer.owner_address = owner.address();
  ASSERT_NO_FATAL_FAILURE(peer.open(owner, Transport::kShm));
  const std::uint64_t word = 0x1122334455667788;
  Completion done;
  ASSERT_TRUE(
      peer.endpoint.put(reinterpret_cast<const std::byte*>(&word), peer.heap, peer.heap.base(), sizeof word, done));
  ASSERT_TRUE(peer.endpoint.flush(done));
  ASSERT_TRUE(finishes(*peer.worker, done, 2000));
  EXPECT_EQ(owner.word_at_base(), word);
}

TEST(Mapped, AllocatedMemoryIsMappedHeapMemoryIsNot) {
  Owner owner(Transport::kShm, false);
  Peer peer;
  peer.owner_address = owner.address();
  ASSERT_NO_FATAL_FAILURE(peer.open(owner, Transport::kShm));
  EXPECT_EQ(peer.heap.mapped(peer.heap.base()), nullptr);
  const std::byte* mapped = peer.allocated.mapped(peer.allocated.base() + 100);
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(*mapped, std::byte{0x7b});
}

TEST(OneSided, GetOfUnmappedMemoryFailsAndANewEndpointWorks) {
  Owner owner(Transport::kShm, false);
  Peer peer;
  peer.owner_address = owner.address();
  ASSERT_NO_FATAL_FAILURE(peer.open(owner, Transport::kShm));
  owner.unmap_heap();
  Completion done;
  const Status s = peer.endpoint.get(peer.memory.data(), peer.local, peer.heap, peer.heap.base(), kBytes, done);
  EXPECT_TRUE(!s || (finishes(*peer.worker, done, 2000) && done.error() != nullptr));
  peer.heap = {};
  peer.allocated = {};
  peer.endpoint = {};
  auto again = Endpoint::connect(*peer.worker, peer.owner_address);
  ASSERT_TRUE(again);
  peer.endpoint = *std::move(again);
  peer.allocated =
      *peer.endpoint.unpack(peer.allocated_key.key, peer.allocated_key.base, peer.allocated_key.size, owner.pid());
  Completion second;
  ASSERT_TRUE(peer.endpoint.get(peer.memory.data(), peer.local, peer.allocated, peer.allocated.base(), kBytes, second));
  ASSERT_TRUE(finishes(*peer.worker, second, 2000));
  EXPECT_EQ(second.error(), nullptr);
  EXPECT_EQ(peer.memory[5], std::byte{0x7b});
}

TEST(Endpoints, KeyUnpackedWhereThereIsNone_ExpectAnError) {
  EXPECT_EQ(Endpoint().unpack(Bytes(8), 0, 8, getpid()).status().code(), StatusCode::kUnavailable);
}

/// Requests more memory than any machine has: 8 EiB.
TEST(Allocation, MoreThanIsFree_ExpectARefusalThatSaysHowMuchThereIs) {
  for (const Transport transport : {Transport::kShm, Transport::kTcp}) {
    const auto context = *Context::create(transport);
    const auto region = context->allocate(std::size_t{1} << 62);
    ASSERT_FALSE(region);
    EXPECT_EQ(region.status().code(), StatusCode::kResourceExhausted);
    EXPECT_NE(region.status().message().find("free"), std::string::npos) << region.status().message();
    EXPECT_TRUE(context->allocate(1 << 20)) << "a small one fits";
  }
}

TEST(Allocation, FreeMemory_ExpectTheSmallerOfFileSystemAndKernel) {
  const auto no_such = free_memory("/proc/1/no-such-directory");
  EXPECT_GT(no_such.bytes, std::size_t{1} << 20) << "what the kernel has, where there is no file system";
  const auto shared = free_memory("/dev/shm");
  struct statvfs there{};
  ASSERT_EQ(statvfs("/dev/shm", &there), 0);
  EXPECT_LE(shared.bytes, std::uint64_t{there.f_blocks} * there.f_frsize);
}

TEST(Emulated, OverTcpAGetNeedsItsOwner) {
  {
    Owner sleeper(Transport::kTcp, false);
    Peer peer;
    peer.owner_address = sleeper.address();
    ASSERT_NO_FATAL_FAILURE(peer.open(sleeper, Transport::kTcp));
    Completion done;
    ASSERT_TRUE(peer.endpoint.get(peer.memory.data(), peer.local, peer.heap, peer.heap.base(), kBytes, done));
    EXPECT_FALSE(finishes(*peer.worker, done, 300)) << "nobody answered, and yet it was answered";
    peer.endpoint = {};  // cancels the get before its memory goes
  }
  Owner helper(Transport::kTcp, true);
  Peer peer;
  peer.owner_address = helper.address();
  ASSERT_NO_FATAL_FAILURE(peer.open(helper, Transport::kTcp));
  Completion done;
  ASSERT_TRUE(peer.endpoint.get(peer.memory.data(), peer.local, peer.heap, peer.heap.base(), kBytes, done));
  ASSERT_TRUE(finishes(*peer.worker, done, 10000));
  EXPECT_EQ(peer.memory, Bytes(kBytes, std::byte{0x5a}));
}

TEST(Transport, OneThatCannotBeHadIsAnErrorByName) {
  auto context = Context::create(Transport::kRdma);
  if (context) GTEST_SKIP() << "this machine has RDMA: there is nothing to refuse";
  EXPECT_EQ(context.status().code(), StatusCode::kUnsupported);
  EXPECT_NE(context.status().message().find("rdma"), std::string::npos) << context.status().message();
}

TEST(RemoteRegion, ContainsDoesNotOverflow) {
  Owner owner(Transport::kShm, false);
  Peer peer;
  peer.owner_address = owner.address();
  ASSERT_NO_FATAL_FAILURE(peer.open(owner, Transport::kShm));
  const std::uint64_t base = peer.heap.base();
  EXPECT_TRUE(peer.heap.contains(base, kBytes));
  EXPECT_FALSE(peer.heap.contains(base, kBytes + 1));
  EXPECT_FALSE(peer.heap.contains(base - 1, 2));
  EXPECT_FALSE(peer.heap.contains(base + kBytes, 1));
  EXPECT_FALSE(peer.heap.contains(base + 1, ~std::uint64_t{0}));
  EXPECT_FALSE(peer.heap.contains(~std::uint64_t{0}, 2));
}

}  // namespace
}  // namespace wherry::fabric
