// SPDX-License-Identifier: Apache-2.0
// wherry-kv-rtl: runs the Verilated core as a node of a kv cluster.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/command_line.hpp"
#include "base/log.hpp"
#include "base/program.hpp"
#include "kv/snapshot/key_window.hpp"
#include "sim/live_node.hpp"

namespace {

int fail(const wherry::Status& status) { return wherry::exit_status("wherry-kv-rtl", status); }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "wherry-kv-rtl: a node of a replicated key-value store that is the RTL, simulated (docs/design/kv-sim.md). "
      "`wherry kv up --rtl 1` starts one.",
      "wherry-kv-rtl"};
  std::string file, log_level = "info", log_file, memory = "hardware";
  std::vector<std::string> keepers;
  wherry::kv::rtl::LiveNodeOptions node;
  app.add_option("--cluster", file, "TOML file: docs/guide/kv.md")->required();
  app.add_option("--number", node.number, "of the node in the cluster file")->required();
  app.add_option("--keeper", keepers, "host:port of keepers; otherwise as the cluster file says");
  app.add_flag("--accept", node.accept, "acknowledge on acceptance, not after the store");
  app.add_option("--memory", memory, "whose times: hardware or simulated")
      ->check(CLI::IsMember({"hardware", "simulated"}))
      ->capture_default_str();
  wherry::kv::rtl::TapNames taps;
  CLI::Option* tap = app.add_option("--tap", taps.network, "a TAP device as the cable, instead of a UDP socket");
  tap->needs(app.add_option("--host-tap", taps.host, "another as the card that the host sees: node's MAC and address")
                 ->needs(tap));
  app.add_option("--tap-netns", taps.network_space, "file: the network namespace of --tap, if it is not this one")
      ->needs(tap);
  app.add_option("--trace", node.core.trace, "an FST file; needs a build with WHERRY_RTL_TRACE");
  app.add_option("--log-level", log_level, "trace, debug, info, warn, error, off")->capture_default_str();
  app.add_option("--log-file", log_file, "instead of standard error");
  wherry::parse_command_line(app, argc, argv);

  if (auto s = load_cluster(node, file, keepers); !s) return fail(s);
  if (auto s = wherry::init_log(log_level, log_file); !s) return fail(s);
  const std::atomic<bool>& stop = wherry::stop_on_signals();
  node.keys = wherry::kv::key_window_path(file, node.number);

  if (!taps.network.empty()) node.taps = taps;
  if (memory == "simulated") node.core.memory = wherry::kv::rtl::kHbmSimulated;
  if (auto s = wherry::kv::rtl::run_live_node(node, stop); !s) return fail(s);
  return 0;
}
