// SPDX-License-Identifier: Apache-2.0
// kv_outage: kills a leader, and reports when each of two clients gets its next write acknowledged. One repeats
// requests as the client library does by default, the other every millisecond. The clock is CLOCK_BOOTTIME, the
// keeper's. Part of `wherry bench kv`.
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.hpp"
#include "base/command_line.hpp"
#include "kv/generated/frame.hpp"
#include "wherry/kv.hpp"

namespace {

using namespace wherry;
using namespace wherry::kv;

int fail(const std::string& message) {
  fmt::print(stderr, "kv_outage: {}\n", message);
  return 1;
}

/// Writes one key, one write at a time.
struct Writer {
  std::optional<Client> client;
  std::uint64_t key = 0, posted = 0, done = 0, unknown = 0;
  std::uint64_t first_after = 0;  ///< when the first write that was posted after the kill was known to be done

  /// The text of an error, or nothing.
  std::string turn(std::uint64_t killed) {
    constexpr std::array<std::byte, 64> kValue{};
    if (client->in_flight() == 0) {
      posted = boot_ns();
      (void)client->post_put(key, kValue, 1);
      client->flush();
    }
    std::array<Completion, 4> ended;
    if (client->poll(ended) == 0) return {};
    if (ended[0].outcome == Outcome::kUnknown) {  // it may be done, but nobody was told so
      ++unknown;
      return {};
    }
    if (ended[0].outcome != Outcome::kOk) return fmt::format("a write ended as {}", to_string(ended[0].outcome));
    ++done;
    if (killed != 0 && posted > killed && first_after == 0) first_after = boot_ns();
    return {};
  }
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"kv_outage: kills the process of a node, and measures how long writes to keys that it led stand still",
               "kv_outage"};
  std::vector<std::string> nodes;
  std::vector<unsigned> slots;
  int pid = 0;
  double before = 0.1;
  std::uint16_t first_lane = 0;
  app.add_option("--node", nodes, "host:port, by number; repeated")->required();
  app.add_option("--pid", pid, "of the node that is killed")->required()->check(CLI::Range(2, 1 << 22));
  app.add_option("--slots", slots, "two of those that it leads")->required()->expected(2)->check(CLI::Range(0, 255));
  app.add_option("--before", before, "seconds of writing before it is killed")->capture_default_str();
  app.add_option("--first-lane", first_lane)->capture_default_str();
  wherry::parse_command_line(app, argc, argv);

  std::array<Writer, 2> writers;
  for (std::size_t i = 0; i < writers.size(); ++i) {
    ClientOptions options;
    options.nodes = nodes;
    options.lanes = 1;
    options.first_lane = static_cast<std::uint16_t>(first_lane + i);
    options.operations = 2;
    options.deadline = std::chrono::seconds(30);
    options.waiting = Waiting::kSpin;
    if (i == 1) options.first_timeout = options.timeout_cap = std::chrono::milliseconds(1);
    auto client = Client::connect(options);
    if (!client) return fail(client.status().message());
    writers[i].client.emplace(*std::move(client));
    while (slot_of(hash_of(writers[i].key)) != slots[i]) ++writers[i].key;
  }
  const std::uint64_t kill_at = boot_ns() + static_cast<std::uint64_t>(before * 1e9);
  std::uint64_t killed = 0;
  while (writers[0].first_after == 0 || writers[1].first_after == 0) {
    if (killed == 0 && boot_ns() >= kill_at) {
      for (const Writer& writer : writers)
        if (writer.done == 0) return fail("nothing was written before the kill");
      if (kill(pid, SIGKILL) != 0) return fail(fmt::format("there is no process {}", pid));
      killed = boot_ns();
    }
    for (Writer& writer : writers)
      if (const std::string what = writer.turn(killed); !what.empty()) return fail(what);
    sched_yield();  // nodes may have to run on this core
  }
  const nlohmann::json result{{"killed_ns", killed},
                              {"first_ns", writers[0].first_after},
                              {"eager_first_ns", writers[1].first_after},
                              {"unknown", writers[0].unknown + writers[1].unknown}};
  fmt::print("{}\n", result.dump());
  return 0;
}
