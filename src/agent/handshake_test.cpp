// SPDX-License-Identifier: Apache-2.0
// Tests how sessions open: unavailable transports, UCX's listening sockets, clients that stop half-way.
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "agent/process_testing.hpp"
#include "agent/testing.hpp"
#include "base/cpu.hpp"
#include "base/testing.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mailbox.hpp"
#include "session/control.hpp"

namespace wherry {
namespace {

using session::ControlType;
using testing_support::AgentProcess;
using testing_support::Child;
using testing_support::eventually;
using testing_support::kPatience;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;

/// Acts like a container that forbids CMA: in this process and its children, the calls fail with EPERM.
void forbid(std::initializer_list<unsigned> calls) {
  std::vector<sock_filter> program{BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned call : calls) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0) _exit(126);
}
void forbid_reads() { forbid({SYS_process_vm_readv}); }
void forbid_cma() { forbid({SYS_process_vm_readv, SYS_process_vm_writev}); }

void expect_offload(Session& session) {
  auto stream = Stream::open(session, {.name = "alive"}, {field<double>("x")});
  ASSERT_TRUE(stream) << stream.status().message();
  const std::vector<double> x(100'000, 1.0);
  auto ticket = stream->post({Column(x)});
  ASSERT_TRUE(ticket) << ticket.status().message();
  const Status s = ticket->wait(kPatience);
  EXPECT_TRUE(s) << s.message();
}

/// Calls `function` with the address of every TCP socket of this process that listens.
template <typename Function>
void for_each_listener(Function function) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_in at{};
    socklen_t length = sizeof at;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length) != 0 || at.sin_family != AF_INET) continue;
    int listens = 0;
    length = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0) function(at);
  }
}

// ---------------------------------------------------------------- transports that cannot be had

TEST(Transports, AgentMayNotReadClients_ShmByName_ExpectRefusalWithCauseAndRemedy) {
  const AgentProcess agent({}, forbid_reads);
  SessionOptions options = agent.options();
  options.transport = Transport::kShm;
  const auto session = Session::open(options);
  EXPECT_EQ(session.status().code(), StatusCode::kUnsupported);
  const std::string& said = session.status().message();
  for (const char* part : {"'shm'", "process_vm_readv", "Operation not permitted", "CAP_SYS_PTRACE", "'tcp'"})
    EXPECT_NE(said.find(part), std::string::npos) << said;
}

TEST(Transports, AgentMayNotReadClients_Auto_ExpectTcpAndTheReason) {
  const AgentProcess agent({}, forbid_reads);
  auto session = Session::open(agent.options());
  ASSERT_TRUE(session) << session.status().message();
  const std::string& used = session->info().transports;
  EXPECT_TRUE(used.starts_with("stream/unix")) << used;
  EXPECT_NE(used.find("process_vm_readv"), std::string::npos) << used;
  EXPECT_EQ(session->info().heap, Verdict::kEmulated);
  expect_offload(*session);
}

TEST(Transports, AgentHasNoCmaAtAll_ExpectTcpByAutoAndRefusalByName) {
  const AgentProcess agent({}, forbid_cma);
  SessionOptions options = agent.options();
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  EXPECT_TRUE(session->info().transports.starts_with("stream/unix")) << session->info().transports;
  expect_offload(*session);
  options.transport = Transport::kShm;
  EXPECT_EQ(Session::open(options).status().code(), StatusCode::kUnsupported);
}

TEST(Transports, ClientHasNoCma_ExpectTcp) {
  const AgentProcess agent;
  Child client(FAULT_CLIENT_PROGRAM, {agent.file(), "tcp"}, forbid_cma);
  EXPECT_EQ(client.wait(), 0);
}

TEST(Transports, AgentStartedForShmOnly_ExpectBothReasons) {
  const AgentProcess agent({"--transport", "shm"}, forbid_reads);
  const auto session = Session::open(agent.options());
  EXPECT_EQ(session.status().code(), StatusCode::kUnsupported);
  const std::string& said = session.status().message();
  EXPECT_NE(said.find("process_vm_readv"), std::string::npos) << said;
  EXPECT_NE(said.find("for transport 'shm' only"), std::string::npos) << said;
}

TEST(Transports, SessionsOverStreams_ExpectNoListenerButTheAgentsOwn) {
  // UCX variables that a user sets for other programs must not make the agent's UCX open a listener.
  setenv("UCX_TLS", "all", 1);
  setenv("UCX_NET_DEVICES", "all", 1);
  ThreadAgent agent({.listen = "127.0.0.1:0", .metrics = "off", .services = {{"flight.listen", "off"}}});
  for (const std::string& at : {agent.session_file(), agent.agent().address()}) {
    SessionOptions options = agent.options();
    options.agent = at;
    options.token = agent.agent().token();
    options.transport = Transport::kTcp;
    auto session = Session::open(options);
    ASSERT_TRUE(session) << session.status().message();
    EXPECT_EQ(session->info().transports, at == agent.session_file() ? "stream/unix" : "stream/tcp");
    auto shared = agent.open();
    for_each_listener([&](const sockaddr_in& local) {
      EXPECT_EQ("127.0.0.1:" + std::to_string(ntohs(local.sin_port)), agent.agent().address());
    });
    expect_offload(*session);
  }
  unsetenv("UCX_TLS");
  unsetenv("UCX_NET_DEVICES");
}

TEST(Transports, RdmaByNameWithoutRdma_ExpectTheAgentNotToStart) {
  if (fabric::Context::create(Transport::kRdma)) GTEST_SKIP() << "this machine has RDMA";
  AgentConfig config;
  config.session_file = TemporaryDirectory::create("test")->file("agent.json");
  config.transport = Transport::kRdma;
  const auto agent = Agent::create(config);
  EXPECT_EQ(agent.status().code(), StatusCode::kUnsupported);
  for (const char* part : {"agent.transport", "'rdma'", "/sys/class/infiniband"})
    EXPECT_NE(agent.status().message().find(part), std::string::npos) << agent.status().message();
}

// ---------------------------------------------------------------- clients that stop, agents that nap

/// A client that stops half-way through the handshake, where the agent waits for the client to fall asleep. It may lie
/// about its memory.
class HalfClient {
 public:
  using Lie = void (*)(session::Attach&);
  /// `pid`: the process that it claims to be.
  explicit HalfClient(Agent& agent, Lie lie = nullptr, pid_t pid = getpid()) {
    channel_ = testing_support::control_channel(agent);
    session::Hello hello;
    hello.host = host_identity();
    hello.pid = static_cast<std::uint32_t>(pid);
    send(ControlType::kHello, encode(hello));
    const auto greeting = *session::decode_greeting(channel_.receive(Deadline(kPatience))->payload);
    context_ = *fabric::Context::create(greeting.transport);
    worker_ = *fabric::Worker::create(context_);
    endpoint_ = *fabric::Endpoint::connect(*worker_, greeting.worker_address);
    memory_ = *context_->allocate(kBytes);
    fabric::RemoteKey key{reinterpret_cast<std::uint64_t>(memory_.data()), memory_.size(), {}};
    EXPECT_TRUE(memory_.pack_key(key.key));
    session::Attach attach{
        .worker_address = worker_->address(), .completions = key, .heap_probe = key, .alloc_probe = key, .mailbox = {}};
    if (lie != nullptr) lie(attach);
    send(ControlType::kAttach, encode(attach));
    EXPECT_TRUE(endpoint_.send(session::kPingMessage, std::as_bytes(std::span(&greeting.session, 1)), pinged_));
    EXPECT_TRUE(eventually([this] {
      worker_->progress();
      const auto frame = channel_.try_receive();
      if (!frame || !frame->has_value()) return !frame;
      attached_ = (*frame)->type == static_cast<std::uint16_t>(ControlType::kAttached);
      if (const auto failure = session::decode_failure((*frame)->payload)) refusal_ = {failure->code, failure->message};
      return true;
    }));
  }
  [[nodiscard]] bool attached() const { return attached_; }
  [[nodiscard]] const Status& refusal() const { return refusal_; }

  static constexpr std::size_t kBytes = 4096;  ///< that it has

 private:
  void send(ControlType type, const Bytes& payload) {
    EXPECT_TRUE(channel_.send(static_cast<std::uint16_t>(type), payload, Deadline(kPatience)));
  }
  FrameChannel channel_;
  std::shared_ptr<fabric::Context> context_;
  std::unique_ptr<fabric::Worker> worker_;
  fabric::Region memory_;
  fabric::Completion pinged_;
  fabric::Endpoint endpoint_;
  bool attached_ = false;
  Status refusal_;
};

TEST(Handshake, OneClientStopsInTheMiddle_ExpectOthersToOpen) {
  ThreadAgent agent;
  const HalfClient stopped(agent.agent());
  ASSERT_TRUE(stopped.attached());
  SessionOptions options = agent.options();
  options.connect_timeout = 5s;
  for (int i = 0; i < 3; ++i) {
    auto session = Session::open(options);
    ASSERT_TRUE(session) << session.status().message();
    expect_offload(*session);
  }
}

TEST(Handshake, ClientClaimsMoreMemoryThanItHas_ExpectRefusalWithBothNumbersAndTheAgentToServeOn) {
  ThreadAgent agent;
  constexpr std::uint64_t kRing = fabric::Mailbox::bytes_for(1 << 20);
  const std::vector<std::pair<HalfClient::Lie, std::uint64_t>> lies{
      {[](session::Attach& m) { m.completions.size = 1024 * sizeof(session::CompletionRecord); }, 65536},
      {[](session::Attach& m) { m.alloc_probe.size = 1 << 30; }, 1 << 30},
      {[](session::Attach& m) { m.mailbox = {m.completions.base, kRing, m.completions.key}; }, kRing}};
  for (const auto& [lie, claimed] : lies) {
    const HalfClient liar(agent.agent(), lie);
    EXPECT_FALSE(liar.attached());
    EXPECT_EQ(liar.refusal().code(), StatusCode::kInvalidArgument);
    for (const std::uint64_t number : {claimed, std::uint64_t{HalfClient::kBytes}})
      EXPECT_NE(liar.refusal().message().find(std::to_string(number)), std::string::npos) << liar.refusal().message();
  }
  auto session = agent.open();
  expect_offload(session);
}

TEST(Handshake, ClientClaimsToBeAnotherProcess_ExpectTheAgentToKnowWhoItIs) {
  ThreadAgent agent;
  const HalfClient liar(agent.agent(), nullptr, getppid());
  // If the agent believed the claim, it would read this client's addresses in the other process.
  EXPECT_TRUE(liar.attached()) << liar.refusal().message();
}

TEST(Handshake, SharedMemoryWithoutTheUnixSocket_ExpectRefusalWithTheRemedy) {
  ThreadAgent agent({.listen = "127.0.0.1:0"});
  SessionOptions options;
  options.agent = agent.agent().address();
  options.token = agent.agent().token();
  options.transport = Transport::kShm;
  const Status s = Session::open(options).status();
  EXPECT_EQ(s.code(), StatusCode::kUnsupported) << s.message();
  EXPECT_NE(s.message().find("session file"), std::string::npos) << s.message();
}

TEST(Handshake, AgentAsItStarts_ExpectNoTcpListenerAndAPrivateSocket) {
  ThreadAgent agent({.metrics = "off", .services = {{"flight.listen", "off"}}});
  for_each_listener([](const sockaddr_in& at) { ADD_FAILURE() << "port " << ntohs(at.sin_port); });
  EXPECT_EQ(std::filesystem::status(agent.agent().control_socket()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  auto session = agent.open();
  expect_offload(session);
}

TEST(Handshake, ClientSendsKeysThatAreNone_ExpectRefusalAndTheAgentToServeOn) {
  ThreadAgent agent;
  const std::vector<HalfClient::Lie> lies{
      [](session::Attach& m) { m.completions.key.clear(); },
      [](session::Attach& m) { m.heap_probe.key.clear(); },
      [](session::Attach& m) { m.alloc_probe.key.clear(); },
      [](session::Attach& m) { m.mailbox = {m.completions.base, fabric::Mailbox::bytes_for(4096), {}}; },
      [](session::Attach& m) { m.completions = {m.completions.base + 8, 64, m.completions.key}; },
      [](session::Attach& m) { m.mailbox.size = fabric::Mailbox::bytes_for(std::size_t{1} << 21); }};
  for (const auto& lie : lies) {
    const HalfClient liar(agent.agent(), lie);
    EXPECT_FALSE(liar.attached());
    EXPECT_EQ(liar.refusal().code(), StatusCode::kProtocol) << liar.refusal().message();
  }
  auto session = agent.open();
  expect_offload(session);
}

TEST(Polling, GetsInFlight_ExpectNoNapBetweenThem) {
  AgentConfig config;
  config.spin_us = 0;
  config.nap_us = 1'000'000;
  config.services["move.transfer_unit"] = config.services["move.window"] = "1MiB";  // a get at a time
  ThreadAgent agent(config);
  SessionOptions options = agent.options();
  options.transport = Transport::kTcp;
  auto session = Session::open(options);
  ASSERT_TRUE(session) << session.status().message();
  auto stream = Stream::open(*session, {.name = "naps"}, {field<double>("x")});
  ASSERT_TRUE(stream);
  // With emulated gets, the agent waits for each of 128 pieces. It may nap once, before the first piece. Naps before
  // all pieces would take over two minutes; without naps the offload takes well under a second.
  const std::vector<double> x((128 << 20) / 8, 1.0);
  const Status s = stream->post({Column(x)})->wait(kPatience);
  EXPECT_TRUE(s) << s.message();
}

}  // namespace
}  // namespace wherry
