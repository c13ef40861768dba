// SPDX-License-Identifier: Apache-2.0
// wherry-kv: the processes of a kv cluster.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <map>

#include "base/command_line.hpp"
#include "base/log.hpp"
#include "base/program.hpp"
#include "base/version.hpp"
#include "kv/process/keeper_process.hpp"
#include "kv/process/node_process.hpp"
#include "kv/process/resp_process.hpp"
#include "kv/process/snapshot_process.hpp"
#include "kv/process/switch_process.hpp"
#include "kv/snapshot/key_window.hpp"

namespace {

using Attach = wherry::kv::XdpPort::Attach;

int fail(const wherry::Status& status) { return wherry::exit_status("wherry-kv", status); }

/// Exit statuses as of `wherry kv`: 4 if no node answered, 130 if interrupted.
int end_of_snapshot(const wherry::Status& status) {
  constexpr int kUnavailable = 4, kInterrupted = 130;
  if (status) return 0;
  const int other = fail(status);
  if (status.code() == wherry::StatusCode::kUnavailable) return kUnavailable;
  return status.code() == wherry::StatusCode::kCancelled ? kInterrupted : other;
}

}  // namespace

int main(int argc, char** argv) {
  wherry::keep_owners_rights();
  CLI::App app{
      "wherry-kv: a node, or the keeper, of a replicated key-value store (docs/guide/kv.md). `wherry kv up` starts a "
      "whole "
      "cluster.\n\n"
      "  wherry-kv node --cluster lab.toml --number 0\n"
      "  wherry-kv keeper --cluster lab.toml --state /var/lib/wherry/lab.json\n",
      "wherry-kv"};
  app.set_version_flag("--version", std::string("wherry ") + std::string(wherry::kVersion));
  app.require_subcommand(1);
  std::string file, log_level = "info", log_file;
  std::vector<std::string> keepers, stations;
  wherry::kv::NodeProcessOptions node;
  wherry::kv::KeeperProcessOptions keeper;
  std::string listen;

  CLI::App* const node_command = app.add_subcommand("node", "a software node, on a UDP socket or on AF_XDP");
  node_command->add_option("--number", node.number, "of the node in the cluster file")->required();
  node_command->add_flag("--spin", node.spin, "never sleep: faster answers, for a core of its own");
  node_command->add_flag("--yield", node.yield, "never sleep, but let others on its core run once its part is done");
  auto* const xdp = node_command->add_option(
      "--xdp", node.xdp,
      "AF_XDP there, past the kernel: eth0, or eth0:3 for its queue 3, or eth0,eth1 (docs/guide/kv-xdp.md)");
  node_command->add_option("--xdp-mode", node.attach, "native, in the driver; generic, any interface; auto: what goes")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Attach>{
          {"auto", Attach::automatic}, {"native", Attach::native}, {"generic", Attach::generic}}));
  node_command->add_flag("--no-udp-checksum", node.no_checksum,
                         "on AF_XDP, frames leave without one: on a veth pair or a cable, which needs none");
  node_command->add_flag("--udp", node.udp, "on a socket, even if the cluster file says xdp")->excludes(xdp);
  node_command->add_option("--keeper", keepers, "host:port of keepers; otherwise as the cluster file says");
  CLI::App* const keeper_command =
      app.add_subcommand("keeper", "decides which nodes are in the cluster, and which of them lead");
  keeper_command->add_option("--listen", listen, "host:port; otherwise as the cluster file says");
  keeper_command->add_option("--state", keeper.state_file, "where the last configuration is kept, in mode keeper");
  wherry::kv::SnapshotProcessOptions snapshot;
  CLI::App* const dump_command = app.add_subcommand("dump", "writes all keys to a file: docs/guide/kv-snapshot.md");
  dump_command->add_option("--node", snapshot.node, "the one of this machine that lists its keys; otherwise any");
  dump_command->add_flag("--force", snapshot.replace, "replace a file that is there");
  CLI::App* const load_command = app.add_subcommand("load", "writes the keys of such a file to the cluster");
  load_command->add_flag("--overwrite", snapshot.overwrite, "keys that are there already, too");
  load_command->add_flag("--check", snapshot.check, "look at the file alone");
  load_command->add_option("--lane", snapshot.lane, "static lane that no other client uses; otherwise granted ones");
  for (CLI::App* const command : {dump_command, load_command}) {
    command->add_option("--timeout", snapshot.patience_s, "seconds without an answer")->check(CLI::PositiveNumber);
    command->add_option("file", snapshot.file, "of the snapshot")->required();
  }
  wherry::kv::RespProcessOptions resp;
  CLI::App* const resp_command =
      app.add_subcommand("resp", "Redis' protocol in front of the cluster: docs/guide/kv-resp.md");
  resp_command->add_option("--listen", resp.listen, "host:port")->capture_default_str();
  auto* const password = resp_command->add_option("--password-file", resp.password_file, "clients say it with AUTH");
  resp_command->add_flag("--no-password", resp.no_password, "listen where other machines reach it, without one")
      ->excludes(password);
  resp_command->add_flag("--key-by-key", resp.key_by_key, "allow MGET and MSET, which are not one step here");
  resp_command->add_option("--clients", resp.clients, "connections at once")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  resp_command->add_option("--lanes", resp.lanes, "writes at once")->check(CLI::Range(1, 1024))->capture_default_str();
  resp_command->add_option("--first-lane", resp.first_lane,
                           "static lanes, that no other client uses, from this one on");
  CLI::App* const switch_command = app.add_subcommand("switch", "forwards frames between interfaces, in their drivers");
  switch_command->add_option("station", stations, "INTERFACE=MAC of the station behind it")->required();
  for (CLI::App* const command : {node_command, keeper_command, dump_command, load_command, resp_command})
    command->add_option("--cluster", file, "TOML file: docs/guide/kv.md")->required(command != load_command);
  for (CLI::App* const command :
       {node_command, keeper_command, switch_command, dump_command, load_command, resp_command}) {
    command->add_option("--log-level", log_level, "trace, debug, info, warn, error, off")->capture_default_str();
    command->add_option("--log-file", log_file, "instead of standard error");
  }
  wherry::parse_command_line(app, argc, argv);

  if (auto s = wherry::init_log(log_level, log_file); !s) return fail(s);
  const std::atomic<bool>& stop = wherry::stop_on_signals();

  if (switch_command->parsed()) {
    const wherry::Status done = wherry::kv::run_switch(stations, stop);
    return done ? 0 : fail(done);
  }
  snapshot.cluster = file;
  if (dump_command->parsed()) return end_of_snapshot(wherry::kv::run_dump(snapshot, stop));
  resp.cluster = file;
  if (resp_command->parsed()) return end_of_snapshot(wherry::kv::run_resp(resp, stop));
  if (load_command->parsed()) return end_of_snapshot(wherry::kv::run_load(snapshot, stop));
  if (node_command->parsed()) {
    node.keys = wherry::kv::key_window_path(file, node.number);
    if (auto s = load_cluster(node, file, keepers); !s) return fail(s);
    if (auto s = wherry::kv::run_node(node, stop); !s) return fail(s);
    return 0;
  }
  auto cluster = wherry::kv::load_cluster_file(file);
  if (!cluster) return fail(cluster.status());
  keeper.cluster = *cluster;
  auto at = wherry::parse_host_port(listen.empty() ? cluster->keeper : listen);
  if (!at) return fail(at.status());
  keeper.listen = *std::move(at);
  if (keeper.state_file.empty()) keeper.state_file = file + ".state.json";
  if (auto s = wherry::kv::run_keeper(keeper, stop); !s) return fail(s);
  return 0;
}
