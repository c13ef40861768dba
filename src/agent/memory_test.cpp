// SPDX-License-Identifier: Apache-2.0
// Tests failed allocations: only the connection or session that needed the memory ends, and the agent serves the next
// one. C++ allocations fail in operator new, those of OpenSSL in its own functions.
#include <arpa/inet.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>

#include "agent/testing.hpp"
#include "base/socket.hpp"
#include "base/testing.hpp"
#include "fabric/tls_testing.hpp"

namespace {

/// Which threads' allocations count.
enum class Whose : int { kNobodys, kDataThread, kAllButTheTest };

thread_local bool is_test = false, is_data_thread = false;
std::atomic<Whose> whose{Whose::kNobodys};
std::atomic<long> until{0};     ///< allocations before one fails
std::atomic<long> failures{0};  ///< that many fail then

/// Whether Arrow is on the stack. It allocates in noexcept functions, where a failed allocation ends the process.
bool in_arrow() noexcept {
  thread_local bool asking = false;
  if (std::exchange(asking, true)) return true;  // the stack's own allocations
  std::array<void*, 24> callers{};
  const int count = ::backtrace(callers.data(), static_cast<int>(callers.size()));
  bool found = false;
  for (int i = 0; i < count; ++i) {
    Dl_info where{};
    if (::dladdr(callers[static_cast<std::size_t>(i)], &where) == 0 || where.dli_fname == nullptr) continue;
    found |= std::string_view(where.dli_fname).find("libarrow") != std::string_view::npos;
  }
  asking = false;
  return found;
}

bool fails() noexcept {
  const Whose who = whose.load(std::memory_order_relaxed);
  if (who == Whose::kNobodys || is_test || (who == Whose::kDataThread && !is_data_thread)) return false;
  return until.fetch_sub(1) <= 0 && !in_arrow() && failures.fetch_sub(1) > 0;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  void* const memory = fails() ? nullptr
                       : alignment <= alignof(std::max_align_t)
                           ? std::malloc(bytes == 0 ? 1 : bytes)
                           : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

bool openssl_fails_too = false;

/// Runs before any library is initialised: OpenSSL accepts other allocators only before its first allocation.
void make_openssl_fail() {
  openssl_fails_too =
      CRYPTO_set_mem_functions(
          [](std::size_t bytes, const char*, int) { return fails() ? nullptr : std::malloc(bytes); },
          [](void* old, std::size_t bytes, const char*, int) { return fails() ? nullptr : std::realloc(old, bytes); },
          [](void* memory, const char*, int) { std::free(memory); }) == 1;
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const first_of_all)() = make_openssl_fail;

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t to) { return allocate(bytes, static_cast<std::size_t>(to)); }
void* operator new[](std::size_t bytes, std::align_val_t to) { return allocate(bytes, static_cast<std::size_t>(to)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace wherry {
namespace {

using testing_support::eventually;
using testing_support::kPatience;
using namespace std::chrono_literals;

constexpr long kAll = 1'000'000'000;

/// While it lives, `count` allocations fail, beginning with the `n`th.
class NoMemory {
 public:
  NoMemory(Whose who, long n, long count) {
    until = n;
    failures = count;
    whose = who;
  }
  ~NoMemory() { whose = Whose::kNobodys; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  /// Whether any allocation has failed.
  [[nodiscard]] static bool struck() { return until.load() < 0; }
};

class Memory : public testing::Test {
 protected:
  Memory() : certificates_(made_.files("authority", "agent", "IP:127.0.0.1")) {
    is_test = true;
    (void)init_log("off", "");
  }
  ~Memory() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void start(bool tls) {
    AgentConfig config;
    config.session_file = directory_.file("agent.json");
    config.budget = 64 << 20;
    config.listen = "127.0.0.1:0";
    config.services["flight.listen"] = "off";  // gRPC ends the process when it has no memory
    config.metrics = "127.0.0.1:0";
    if (tls) config.tls = {certificates_.certificate, certificates_.key, {}};
    auto agent = Agent::create(config);
    ASSERT_TRUE(agent) << agent.status().message();
    agent_ = *std::move(agent);
    thread_ = std::thread([this] {
      is_data_thread = true;
      EXPECT_TRUE(agent_->run(stop_, false));
    });
    ASSERT_TRUE(eventually([&] { return read_session_file(agent_->session_file()).ok(); }));
  }

  [[nodiscard]] SessionOptions options(Transport transport) const {
    SessionOptions o;
    o.agent = agent_->session_file();
    o.transport = transport;
    o.max_tickets = 4;
    return o;
  }

  /// Opens a session, offloads, and closes it. Each failure returns an error at once, so the client never waits in
  /// vain.
  Status use(Transport transport) const {
    auto session = Session::open(options(transport));
    if (!session) return session.status();
    auto stream = Stream::open(*session, {.name = "x"}, {field<double>("x")});
    if (!stream) return stream.status();
    const std::vector<double> x(1000, 1.0);
    for (int i = 0; i < 2; ++i) {
      auto ticket = stream->post({Column(x)});
      if (!ticket) return ticket.status();
      if (Status s = ticket->wait(kPatience); !s) return s;
    }
    return stream->close();
  }

  void expect_served() const {
    for (const Transport transport : {Transport::kShm, Transport::kTcp}) {
      Status s;
      // The agent notices the end of the session before, and closes its stream, after a while.
      EXPECT_TRUE(eventually([&] { return (s = use(transport)).ok(); })) << s.message();
    }
  }

  /// Runs `work` repeatedly. In each run a later allocation is the first to fail, until all allocations succeed.
  template <typename Work>
  void sweep(long count, long step, const Work& work) {
    long n = 0;
    for (bool struck = true; struck && !HasFailure(); n += step) {
      const NoMemory none(Whose::kDataThread, n, count);
      work();
      struck = none.struck();
    }
    RecordProperty("allocations", std::to_string(n));
    EXPECT_GT(n, step) << "nothing failed";
    expect_served();
  }

  void sweep_sessions(Transport transport) {
    start(false);
    expect_served();
    const auto session = [&] {
      const Status s = use(transport);
      EXPECT_NE(s.code(), StatusCode::kDeadlineExceeded) << s.message();
    };
    sweep(1, 1, session);
    sweep(kAll, 5, session);
  }

  /// Acts as a stranger without the token: sends nothing, other bytes, or the beginning of a handshake.
  void be_a_stranger() const {
    const auto at = *parse_host_port(agent_->address());
    for (const std::string_view words :
         {std::string_view(), std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view(opening_)}) {
      auto remote = connect_tcp(at, Deadline(kPatience));
      auto local = connect_unix(agent_->control_socket(), Deadline(kPatience));
      for (const auto* socket : {&remote, &local}) {
        if (!*socket) continue;
        (void)::send((*socket)->get(), words.data(), words.size(), MSG_NOSIGNAL);
        ::shutdown((*socket)->get(), SHUT_WR);
        pollfd ended{(*socket)->get(), POLLIN, 0};
        EXPECT_GT(::poll(&ended, 1, 50'000), 0) << "neither an answer nor the end";
        char rest[256];
        while (::recv((*socket)->get(), rest, sizeof rest, MSG_DONTWAIT) > 0) {
        }
      }
    }
  }

  testing_support::Certificates made_;
  const fabric::TlsFiles certificates_;
  TemporaryDirectory directory_ = *TemporaryDirectory::create("memory");
  std::string opening_ = [] {
    auto h = fabric::StreamHandshake::client(fabric::Purpose::kControl, 0, "not the token", 0);
    return std::string(reinterpret_cast<const char*>(h.out().data()), h.out().size());
  }();
  std::atomic<bool> stop_{false};
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
};

TEST_F(Memory, AnyAllocationOfASessionFails_SharedMemory_ExpectAnErrorForItAndOthersToBeServed) {
  sweep_sessions(Transport::kShm);
}

TEST_F(Memory, AnyAllocationOfASessionFails_Streams_ExpectAnErrorForItAndOthersToBeServed) {
  sweep_sessions(Transport::kTcp);
}

TEST_F(Memory, AnyAllocationForAStrangerFails_ExpectItsConnectionToEndAndOthersToBeServed) {
  start(false);
  sweep(1, 1, [&] { be_a_stranger(); });
  sweep(kAll, 1, [&] { be_a_stranger(); });
}

TEST_F(Memory, AnyAllocationForAStrangerFails_Tls_ExpectItsConnectionToEndAndOthersToBeServed) {
  ASSERT_TRUE(openssl_fails_too);
  start(true);
  const std::vector<char> hello = testing_support::client_hello();
  opening_.assign(hello.begin(), hello.end());
  sweep(1, 11, [&] { be_a_stranger(); });  // handshakes get a tenth of the time
  sweep(kAll, 11, [&] { be_a_stranger(); });
}

/// Tests the metrics page and the local readers, which have their own threads.
TEST_F(Memory, AnyAllocationOfAnotherThreadFails_ExpectThePageAndReadersToBeServedAgain) {
  start(false);
  const auto ask = [&](bool local, const std::string& words, int patience_ms = 50'000) {
    const auto file = read_session_file(agent_->session_file());
    const std::string address = file->metrics.substr(7, file->metrics.find('/', 7) - 7);
    auto socket = local ? connect_unix(local_socket_for(agent_->session_file()), Deadline(kPatience))
                        : connect_tcp(*parse_host_port(address), Deadline(kPatience));
    std::string answer;
    if (!socket) return answer;
    (void)::send(socket->get(), words.data(), words.size(), MSG_NOSIGNAL);
    std::array<char, 4096> some{};
    for (pollfd news{socket->get(), POLLIN, 0}; ::poll(&news, 1, patience_ms) > 0;) {
      const ssize_t n = ::recv(socket->get(), some.data(), some.size(), MSG_DONTWAIT);
      if (n <= 0) return answer;
      answer.append(some.data(), static_cast<std::size_t>(n));
      if (local && answer.ends_with('\n')) return answer;
    }
    return answer;
  };
  const std::string page = "GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + agent_->token() + "\r\n\r\n";
  const std::string hello = R"({"op":"hello","version":2,"token":")" + agent_->token() + "\"}\n";
  for (const long count : {1L, kAll}) {
    for (long n = 0; n < 90 && !HasFailure(); n += 3) {
      {
        const NoMemory none(Whose::kAllButTheTest, n, count);
        (void)ask(false, page, 200);  // what comes of these is not looked at
        (void)ask(true, "nothing of ours\n", 200);
      }
      EXPECT_TRUE(eventually([&] { return ask(false, page).starts_with("HTTP/1.1 200"); }));
      EXPECT_TRUE(eventually([&] { return ask(true, hello).starts_with('{'); }));
    }
  }
  expect_served();
}

/// Without memory, HMAC() returns null and writes no result, so the proof would be all zeros.
TEST(Proof, NoMemoryForIt_ExpectNobodyToGetIn) {
  ASSERT_TRUE(openssl_fails_too);
  is_test = false;
  is_data_thread = true;
  for (long n = 0; n < 200; ++n) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
    const Fd stranger(ends[0]);
    const auto here = plain_stream(Fd(ends[1]));
    auto server = fabric::StreamHandshake::server(
        [](fabric::Purpose, std::uint64_t) { return std::optional(std::string("token")); });
    auto client = fabric::StreamHandshake::client(fabric::Purpose::kControl, 0, "another", 0);
    std::string words(reinterpret_cast<const char*>(client.out().data()), client.out().size());
    ASSERT_EQ(::send(stranger.get(), words.data(), words.size(), 0), static_cast<ssize_t>(words.size()));
    ASSERT_TRUE(server.advance(*here));
    words.assign(fabric::StreamHandshake::kProof, '\0');
    ASSERT_EQ(::send(stranger.get(), words.data(), words.size(), 0), static_cast<ssize_t>(words.size()));
    bool let_in = false;
    {
      const NoMemory none(Whose::kDataThread, n, kAll);
      try {
        const auto done = server.advance(*here);
        let_in = done && *done;
      } catch (const std::bad_alloc&) {
        let_in = false;
      }
    }
    EXPECT_FALSE(let_in) << "without the memory for allocation " << n;
  }
  is_data_thread = false;
}

}  // namespace
}  // namespace wherry
