// SPDX-License-Identifier: Apache-2.0
// Sends sequences of control messages to an agent in this process. The agent must survive each sequence, and then serve
// a correct client.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "agent/sequence_testing.hpp"
#include "base/log.hpp"
#include "base/temporary_directory.hpp"
#include "session/connection.hpp"
#include "session/session_file.hpp"

namespace {

using namespace wherry;

struct Running {
  Running() {
    // Set before the first call into UCX, because its hooks of mmap conflict with AddressSanitizer's.
    setenv("UCX_MEM_EVENTS", "n", 1);
    setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
    (void)init_log("off", "");
    AgentConfig config;
    config.session_file = directory.file("agent.json");
    config.budget = 16 << 20;
    config.metrics = "off";
    config.services["flight.listen"] = "off";
    config.services["sink.root"] = directory.path();
    agent = *Agent::create(config);
    thread = std::thread([this] { (void)agent->run(stop, false); });
    while (!read_session_file(config.session_file)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    player.emplace(*agent);
  }
  TemporaryDirectory directory = *TemporaryDirectory::create("fuzz");
  std::atomic<bool> stop{false};
  std::unique_ptr<Agent> agent;
  std::thread thread;
  std::optional<testing_support::SequencePlayer> player;
};

}  // namespace

/// UCX leaks memory of connections that end half-way.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT(bugprone-reserved-identifier)
  return "leak:libucs.so\nleak:libucp.so\nleak:libuct.so\n";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto& running = *new Running;
  static unsigned runs = 0;
  running.player->play(std::as_bytes(std::span(data, size)));
  if (++runs % 64 != 0) return 0;
  SessionOptions options;
  options.agent = running.agent->session_file();
  options.max_tickets = 1;
  options.connect_timeout = std::chrono::seconds(60);
  const auto session = session::Connection::open(options);
  if (!session || !(*session)->request("move", "status", {})) {
    std::fprintf(stderr, "the agent does not serve any more: %s\n", session.status().to_string().c_str());
    std::abort();
  }
  return 0;
}
