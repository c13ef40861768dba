// SPDX-License-Identifier: Apache-2.0
// bypass_guest: runs the real set-up program in a Linux guest, with a NIC of QEMU and the Verilated bypass core.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/command_line.hpp"
#include "base/program.hpp"
#include "sim/qemu/guest_run.hpp"

namespace {

using namespace wherry;
using namespace wherry::sim;

constexpr const char* kProgram = "bypass_guest";

nlohmann::json json_of(const GuestTurn& turn) {
  return {{"name", turn.name},          {"sent", turn.frames.sent}, {"returned", turn.frames.returned},
          {"wrong", turn.frames.wrong}, {"lost", turn.frames.lost}, {"uninvited", turn.uninvited},
          {"messages", turn.messages},  {"seconds", turn.seconds}};
}

nlohmann::json json_of(const GuestReport& report) {
  nlohmann::json turns = nlohmann::json::array();
  for (const GuestTurn& turn : report.turns) turns.push_back(json_of(turn));
  return {{"results", report.results},
          {"marks", report.marks},
          {"turns", turns},
          {"pings", report.pings},
          {"tails", report.tails},
          {"tails_refused", report.tails_refused},
          {"tails_faulted", report.tails_faulted},
          {"mapped_after_down", report.mapped_after_down},
          {"card_resets", report.card_resets},
          {"boots_crashed", report.boots_crashed},
          {"seconds", report.seconds}};
}

int fail(const Status& status) { return exit_status(kProgram, status); }

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "bypass_guest: a Linux guest that sets up a NIC of QEMU and the bypass core; tools/guest/run.py starts it",
      kProgram};
  GuestRunOptions options;
  std::string json_file;
  app.add_option("--kernel", options.guest.kernel, "of the guest")->required()->check(CLI::ExistingFile);
  app.add_option("--initrd", options.guest.initrd, "with tools/guest/init.sh")->required()->check(CLI::ExistingFile);
  app.add_option("--frames", options.frames, "in each turn")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of sizes and contents")->capture_default_str();
  app.add_option("--qemu", options.guest.qemu, "path of QEMU, or its name on $PATH")->capture_default_str();
  app.add_option("--json", json_file, "where the figures go")->required();
  wherry::parse_command_line(app, argc, argv);

  std::ofstream file(json_file);
  if (!file) return fail({StatusCode::kInvalidArgument, fmt::format("cannot write {}", json_file)});
  const auto report = run_guest(options, [](const std::string& line) {
    fmt::print("{}\n", line);
    (void)std::fflush(stdout);
  });
  if (!report) return fail(report.status());
  file << json_of(*report).dump(2) << '\n';
  file.close();  // a full disk may show only here
  return file.good() ? 0 : fail({StatusCode::kInternal, fmt::format("cannot write {}", json_file)});
}
