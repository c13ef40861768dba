// SPDX-License-Identifier: Apache-2.0
// bypass_demo: connects a NIC of QEMU, which the bypass card drives, to a TAP device. `wherry bypass demo` starts it.
// It prints one JSON object per line on standard output.
#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/command_line.hpp"
#include "base/program.hpp"
#include "sim/demo/demo.hpp"
#include "sim/demo/host.hpp"

namespace {

using namespace wherry;
using namespace wherry::sim;

constexpr const char* kProgram = "bypass_demo";

int fail(const Status& status) { return exit_status(kProgram, status); }

nlohmann::json json_of(const DemoOptions& options, const DemoReport& report) {
  nlohmann::json card = nlohmann::json::object();
  const HardwareReport& hardware = report.hardware;
  for (const ShownCounter& one : hardware.card) card[one.name] = one.value;
  return {{"ready", report.ready},
          {"seconds", report.seconds},
          {"qemu", report.qemu},
          {"nic", options.machine.nic},
          {"core", options.twin ? "twin" : "rtl"},
          {"frames_in", hardware.frames_in},
          {"frames_out", hardware.frames_out},
          {"answered", {{"arp", hardware.arp}, {"ping", hardware.icmp}, {"kv", hardware.kv}}},
          {"ignored", hardware.ignored},
          {"card", card},
          {"dma_reads", report.dma_reads},
          {"dma_writes", report.dma_writes},
          {"tail_writes", report.tail_writes},
          {"cycles", hardware.cycles},
          {"simulation_cpu_s", static_cast<double>(report.cpu_ns) * 1e-9},
          {"qemu_cpu_s", static_cast<double>(report.qemu_cpu_ns) * 1e-9},
          {"pid", ::getpid()},
          {"qemu_pid", report.qemu_process},
          {"host",
           {{"pid", report.host},
            {"state", std::string(1, report.host_use.state)},
            {"setup_cpu_ns", report.host_setup_ns},
            {"cpu_ns", report.host_use.cpu_ns},
            {"setup_accesses", report.host_setup_accesses},
            {"accesses", report.host_accesses}}}};
}

int host_part(int socket, const HostOptions& options) {
  const HostLink link(socket);
  const Status status = run_host(link, options);
  if (!status) link.fail(status.message());
  return status ? 0 : fail(status);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "bypass_demo: a network card of QEMU at a TAP device, driven by the bypass card, behind which kv answers "
      "(docs/design/bypass-qemu.md). `wherry bypass demo` starts it",
      kProgram};
  DemoOptions options;
  bool keep_host = false;
  std::string core = "rtl";
  std::uint32_t every_ms = 500;
  app.add_option("--tap", options.tap.name, "name of the TAP device, which is made and goes with this process")
      ->default_val("nic0");
  app.add_option("--address", options.tap.address, "of this machine at the TAP device")->default_val("10.90.0.1/24");
  CLI::Option* cluster = app.add_option("--cluster", options.cluster,
                                        "file of a kv cluster in mode static with one node, whose address and MAC are "
                                        "the NIC's");
  app.add_option("--nic", options.machine.nic, "QEMU's device")
      ->check(CLI::IsMember({"e1000e", "igb"}))
      ->capture_default_str();
  app.add_option("--core", core, "what the card is: the Verilated core, or its software twin")
      ->check(CLI::IsMember({"rtl", "twin"}))
      ->capture_default_str();
  app.add_option("--qemu", options.machine.qemu, "path of QEMU, or its name on $PATH")->capture_default_str();
  app.add_option("--every", every_ms, "milliseconds between reports")->check(CLI::Range(10, 60'000));
  app.add_flag("--host-runs", keep_host, "do not stop the host's part (SIGSTOP) once everything is set up");
  app.add_flag("--loopback", options.loopback, "switch the loopback device on: in a new network namespace");

  int socket = -1;
  HostOptions host;
  CLI::App* part = app.add_subcommand("host", "")->group("");  // this program's own affair
  part->add_option("--fd", socket)->required();
  part->add_option("--nic", host.nic)->required();
  part->add_option("--cluster", host.cluster)->required();
  part->add_option("--card-bar", host.card_bar)->required();
  part->add_option("--nic-bar", host.nic_bar)->required();
  part->add_flag("--twin", host.twin);
  wherry::parse_command_line(app, argc, argv);
  if (part->parsed()) return host_part(socket, host);
  if (cluster->empty()) return fail({StatusCode::kInvalidArgument, "--cluster is required"});

  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // of what started it
  options.twin = core == "twin";
  options.suspend = !keep_host;
  options.every = std::chrono::milliseconds(every_ms);
  const std::atomic<bool>& stop = stop_on_signals();
  const Status done = run_demo(options, "/proc/self/exe", stop, [&options](const DemoReport& report) {
    fmt::print("{}\n", json_of(options, report).dump());
    (void)std::fflush(stdout);
  });
  return done ? 0 : fail(done);
}
