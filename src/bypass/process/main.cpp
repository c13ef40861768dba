// SPDX-License-Identifier: Apache-2.0
// wherry-bypass: the host side of bypass.
#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "base/command_line.hpp"
#include "base/program.hpp"
#include "base/version.hpp"
#include "bypass/process/commands.hpp"

int main(int argc, char** argv) {
  using namespace wherry::bypass;
  wherry::keep_owners_rights();
  CLI::App app{
      "wherry-bypass: hands a NIC's rings to an FPGA card, and takes them back (docs/guide/bypass-host.md).\n\n"
      "  wherry-bypass probe                     what is here, and what is in the way\n"
      "  wherry-bypass up                        the card drives the NIC, until Ctrl-C\n"
      "  wherry-bypass status\n"
      "  wherry-bypass down\n\n"
      "Exit status: 0 done, 1 failed, 2 wrong command line, 3 no such hardware, 10 no common port, 11 ACS redirect,\n"
      "12 BAR, 13 IOMMU group, 14 reserved address, 15 no IOMMU, 20 reads dead, 21 writes dead, 22 wrong data,\n"
      "23 tails dead, 24 no loopback, 25 card memory, 26 DMA engine dead.",
      "wherry-bypass"};
  app.set_version_flag("--version", std::string("wherry ") + std::string(wherry::kVersion));
  app.require_subcommand(1);
  CommandOptions options;
  CLI::App* const probe = app.add_subcommand("probe", "what is here, and whether a NIC and a card can work together");
  CLI::App* const up = app.add_subcommand("up", "the card drives the NIC; needs root");
  CLI::App* const status = app.add_subcommand("status", "what card and NIC count");
  CLI::App* const down = app.add_subcommand("down", "gives the NIC back to its kernel driver");
  for (CLI::App* const command : {probe, up, status, down}) {
    command->add_option("--nic", options.nic, "its PCI address, as 0000:03:00.0; default: the only one");
    command->add_option("--directory", options.directory, "where `up` writes what it has taken")->capture_default_str();
    command->add_option("--sysfs", options.sysfs, "")->group("");
  }
  for (CLI::App* const command : {probe, up}) {
    command->add_option("--card", options.card, "its PCI address; default: the only Xilinx function with a window");
    command->add_option("--seed", options.up.seed, "of what the pre-flight test's frames hold")->capture_default_str();
  }
  for (CLI::App* const command : {probe, up, status, down})
    command->add_flag("--json", options.json, "one object, for programs");
  probe->add_flag("--move", options.move,
                  "take the NIC from its driver for a second, and move frames through it; needs root");
  up->add_flag("--promiscuous", options.up.promiscuous, "every frame on the wire, not only those to the NIC's address");
  up->add_flag("--in-place", options.up.in_place, "frames stay in their slots, and are sent from there");
  up->add_option("--pairs", options.up.pairs, "queue pairs: the NIC spreads flows over them")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  up->add_option("--frame-bytes", options.up.frame_bytes, "longest frame, with FCS")
      ->check(CLI::Range(64, 9728))
      ->capture_default_str();
  up->add_flag("--allow-detour", options.up.allow_detour,
               "go on although traffic passes the root complex, if the pre-flight test finds that it arrives");
  up->add_option(
        "--rings", options.up.rings,
        "where rings and frames lie: card; host (each frame costs a processor core's time; needs the DMA engine "
        "on the card); auto: in the card, or else in the host's memory, which it then says")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, RingPlace>{
              {"auto", RingPlace::kAuto}, {"card", RingPlace::kCard}, {"host", RingPlace::kHost}},
          CLI::ignore_case))
      ->default_str("auto");
  FunctionWords& function = options.function;
  up->add_option("--function", function.name, "what the card does with frames: docs/design/bypass-functions.md")
      ->check(CLI::IsMember(function_names()));
  up->add_option("--ip", function.ip, "of echo: the IPv4 address that it answers for");
  up->add_option("--udp-port", function.udp_port, "of echo")->capture_default_str();
  up->add_option("--rule", function.rules,
                 "of filter: pass or drop, then all, arp, ip, icmp, tcp[:PORT] or udp[:PORT]; the first that matches "
                 "decides, else a frame is dropped")
      ->allow_extra_args(false);
  up->add_option("--to", function.to, "of the generator: the Ethernet address that it sends to");
  up->add_option("--bytes", function.bytes, "of a generated frame, without FCS")->capture_default_str();
  up->add_option("--interval", function.interval, "from one generated frame to the next, in 1/65536 cycles")
      ->capture_default_str();
  up->add_option("--count", function.count, "generated frames; 0: without an end")->capture_default_str();
  up->add_flag("!--no-preflight", options.up.preflight, "do not move data first");
  wherry::parse_command_line(app, argc, argv);

  const std::atomic<bool>& stop = wherry::stop_on_signals();
  if (probe->parsed()) return run_probe(options, stop);
  if (up->parsed()) return run_up(options, stop);
  if (status->parsed()) return run_status(options);
  return run_down(options);
}
