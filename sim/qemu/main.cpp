// SPDX-License-Identifier: Apache-2.0
// bypass_qemu: runs a NIC of QEMU that the bypass card drives.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/command_line.hpp"
#include "base/program.hpp"
#include "sim/bypass/twin.hpp"
#include "sim/qemu/run.hpp"
#ifdef WHERRY_RTL
#include "sim/bypass/rtl_card.hpp"
#endif

namespace {

using namespace wherry;
using namespace wherry::sim;

constexpr const char* kProgram = "bypass_qemu";

nlohmann::json json_of(const Phase& phase) {
  return {{"name", phase.name},
          {"sent", phase.frames.sent},
          {"returned", phase.frames.returned},
          {"wrong", phase.frames.wrong},
          {"lost", phase.frames.lost},
          {"may_lose", phase.may_lose},
          {"refused", phase.refused},
          {"unanswered", phase.frames.unanswered},
          {"replies", phase.frames.replies},
          {"balanced", phase.balanced},
          {"messages", phase.messages},
          {"seconds", phase.seconds}};
}

nlohmann::json json_of(const CardCounters& card) {
  return {{"rx_frames", card.rx_frames},         {"rx_bytes", card.rx_bytes},
          {"rx_damaged", card.rx_damaged},       {"rx_too_long", card.rx_too_long},
          {"rx_refused", card.rx_refused},       {"rx_delivered", card.rx_delivered},
          {"rx_stopped", card.rx_stopped},       {"rx_cut", card.rx_cut},
          {"tx_frames", card.tx_frames},         {"tx_bytes", card.tx_bytes},
          {"tx_taken", card.tx_taken},           {"tx_stopped", card.tx_stopped},
          {"rx_tails", card.rx_tails},           {"tx_tails", card.tx_tails},
          {"tx_writebacks", card.tx_writebacks}, {"wrong_writebacks", card.wrong_writebacks},
          {"stray_reads", card.stray_reads},     {"stray_writes", card.stray_writes}};
}

/// The sums over the phases without events at the NIC.
struct Sum {
  std::uint64_t sent = 0, wrong = 0, lost = 0, messages = 0;
  double seconds = 0;
};

Sum sum_of(const RunReport& report) {
  Sum sum;
  for (const Phase& phase : report.phases) {
    sum.wrong += phase.frames.wrong;
    if (phase.may_lose) continue;
    sum.sent += phase.frames.sent;
    sum.lost += phase.frames.lost;
    sum.messages += phase.messages;
    sum.seconds += phase.seconds;
  }
  return sum;
}

nlohmann::json json_of(const RunOptions& options, const std::string& core, const RunReport& report) {
  const Sum sum = sum_of(report);
  nlohmann::json phases = nlohmann::json::array();
  for (const Phase& phase : report.phases) phases.push_back(json_of(phase));
  return {{"program", kProgram},
          {"card", core},
          {"nic", options.machine.nic},
          {"qemu", report.qemu},
          {"seed", options.seed},
          {"frames", options.frames},
          {"good", report.good()},
          {"frames_wrong", sum.wrong},
          {"frames_lost", sum.lost},
          {"tx_writebacks", report.card.tx_writebacks},
          {"messages_per_frame", static_cast<double>(sum.messages) / static_cast<double>(sum.sent)},
          {"frames_per_second", static_cast<double>(sum.sent) / sum.seconds},
          {"tails_per_frame", static_cast<double>(report.card.rx_tails + report.card.tx_tails) /
                                  static_cast<double>(report.card.rx_frames)},
          {"phases", phases},
          {"counters", json_of(report.card)}};
}

void say(const Phase& phase) {
  fmt::print("{:42} {:6} sent, {:6} returned, {:3} wrong, {:3} lost{}, {:7.0f} frames/s{}\n", phase.name,
             phase.frames.sent, phase.frames.returned, phase.frames.wrong, phase.frames.lost,
             phase.may_lose ? " (may be)" : "", static_cast<double>(phase.frames.returned) / phase.seconds,
             phase.good() ? "" : "  FAILED");
  (void)std::fflush(stdout);
}

int fail(const Status& status) { return exit_status(kProgram, status); }

#ifdef WHERRY_RTL
const std::vector<std::string> kCores{"twin", "rtl"};
std::unique_ptr<Card> make_card(const std::string& core, InPlaceFunction& function, std::uint64_t seed) {
  if (core == "rtl") return std::make_unique<RtlCard>(&function, RtlOptions{.seed = seed, .pauses = 0, .trace = {}});
  return std::make_unique<Twin>(&function);
}
#else
const std::vector<std::string> kCores{"twin"};
std::unique_ptr<Card> make_card(const std::string&, InPlaceFunction& function, std::uint64_t) {
  return std::make_unique<Twin>(&function);
}
#endif

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"bypass_qemu: a network card of QEMU, driven by the bypass card (docs/design/bypass-qemu.md)", kProgram};
  RunOptions options;
  std::string json_file, core = kCores.front();
  bool no_events = false;
  app.add_option("--nic", options.machine.nic, "QEMU's device")
      ->check(CLI::IsMember({"e1000e", "igb"}))
      ->capture_default_str();
  app.add_option("--core", core, "what the card is: the core's software twin, or the Verilated core itself")
      ->check(CLI::IsMember(kCores))
      ->capture_default_str();
  app.add_option("--frames", options.frames, "of all sizes from 60 to 9000 bytes, there and back")
      ->check(CLI::Range(std::uint64_t{2}, std::uint64_t{100'000'000}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of sizes and contents")->capture_default_str();
  app.add_option("--qemu", options.machine.qemu, "path of QEMU, or its name on $PATH")->capture_default_str();
  app.add_flag("--no-events", no_events, "no resets, no link off, no removal");
  app.add_option("--json", json_file, "write the figures there, too");
  wherry::parse_command_line(app, argc, argv);
  options.events = !no_events;

  std::ofstream file;
  if (!json_file.empty()) {
    file.open(json_file);
    if (!file) return fail({StatusCode::kInvalidArgument, fmt::format("cannot write {}", json_file)});
  }
  InPlaceEcho function;
  const std::unique_ptr<Card> card = make_card(core, function, options.seed);
  const auto report = run_bypass(options, *card, function, say);
  if (!report) return fail(report.status());
  const nlohmann::json figures = json_of(options, core, *report);
  if (file.is_open()) {
    file << figures.dump(2) << '\n';
    file.close();  // a full disk may show only here
    if (!file) return fail({StatusCode::kInternal, fmt::format("cannot write {}", json_file)});
  }
  fmt::print(
      "{}, {}, {}: {} frames wrong, {} lost, {} transmit write-backs, {:.1f} messages and {:.2f} tail writes a frame, "
      "{:.0f} frames/s\n",
      report->qemu, options.machine.nic, core, figures["frames_wrong"].get<std::uint64_t>(),
      figures["frames_lost"].get<std::uint64_t>(), report->card.tx_writebacks,
      figures["messages_per_frame"].get<double>(), figures["tails_per_frame"].get<double>(),
      figures["frames_per_second"].get<double>());
  return report->good() ? 0 : 1;
}
