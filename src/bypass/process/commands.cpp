// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/commands.hpp"

#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>
#include <variant>

#include "base/clock.hpp"
#include "base/error_line.hpp"
#include "base/try.hpp"
#include "bypass/process/status_server.hpp"
#include "bypass/process/text.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr auto kEndLimit = 30s;  // of a process that is to give back: resets, and a kernel driver's probe
constexpr int kFailed = 1, kWrongCall = 2;

void print(const std::string& text) { (void)std::fwrite(text.data(), 1, text.size(), stdout); }
void say(const std::string& text) { error_line(text); }

int status_of(const Status& status) { return status.code() == StatusCode::kInvalidArgument ? kWrongCall : kFailed; }

int fail(const Status& status) {
  say(fmt::format("wherry-bypass: {}", status.message()));
  return status_of(status);
}

/// What a machine without it says.
int no_hardware(const CommandOptions& options, const pci::PciTree& tree, const Candidates& candidates,
                const std::string& what) {
  const std::string sentence = fmt::format("{}: bypass needs a NIC that it drives and an FPGA card.", what);
  if (options.json)
    print(report_json(tree, candidates, nullptr, sentence));
  else
    print(candidates_text(tree, candidates));
  say(fmt::format("wherry-bypass: {}", sentence));
  return static_cast<int>(Cause::kNoHardware);
}

/// The machine, and the NIC and the card of it that are meant.
struct Chosen {
  pci::PciTree tree;
  Candidates candidates;
  pci::BusAddress nic{}, card{};
};

/// Or an exit status, when the reason has been printed.
std::variant<Chosen, int> choose_pair(const CommandOptions& options) {
  auto tree = pci::PciTree::read(options.sysfs);
  if (!tree) {
    say(fmt::format("wherry-bypass: {}", tree.status().message()));
    return static_cast<int>(Cause::kNoHardware);
  }
  Candidates candidates = find_candidates(*tree);
  const auto nic = choose(*tree, candidates.nics, options.nic, "NIC that is known");
  const auto card = choose(*tree, candidates.cards, options.card, "FPGA card with a window of 8 MiB");
  if (nic && card) return Chosen{*std::move(tree), std::move(candidates), *nic, *card};
  const Status why = nic ? card.status() : nic.status();
  if (why.code() == StatusCode::kNotFound) return no_hardware(options, *tree, candidates, why.message());
  if (!options.json) print(candidates_text(*tree, candidates));
  return fail(why);
}

std::string status_text(BringUp& up) {
  ordered_json document{{"pid", getpid()},
                        {"nic", up.options().nic.text()},
                        {"card", up.options().card.text()},
                        {"personality", up.nic().personality().name},
                        {"mac", text_of(up.nic().mac())}};
  const Link link = up.nic().link();
  document["link"] = {{"up", link.up}, {"mbits", link.mbits}};
  document["running"] = up.card().running();
  if (const auto counters = up.card().counters()) {
    document["counters"] = ordered_json::object();
    for (const Counter& counter : *counters) document["counters"][std::string(counter.name)] = counter.value;
  } else {
    document["error"] = counters.status().message();
  }
  if (const auto functions = Functions::open(up.card().access())) {
    document["function"] = {{"name", name_of(functions->running())}, {"counters", ordered_json::object()}};
    for (const auto& [name, value] : functions->counters()) document["function"]["counters"][name] = value;
  }
  return document.dump(2) + "\n";
}

void show_status(const std::string& text) {
  const ordered_json document = ordered_json::parse(text, nullptr, false);
  if (!document.is_object()) return print(text);
  const ordered_json link = document.value("link", ordered_json::object());
  print(fmt::format(
      "NIC {}, card {}, process {}: {}, link {}\n", document.value("nic", ""), document.value("card", ""),
      document.value("pid", 0), document.value("running", false) ? "runs" : "does not run",
      link.value("up", false) ? fmt::format("up at {} Mbit/s", link.value("mbits", 0)) : std::string("down")));
  const auto show = [](const ordered_json& counters) {
    for (const auto& [name, value] : counters.items())
      if (value.is_number_unsigned() && value != 0)
        print(fmt::format("  {:16} {}\n", name, value.get<std::uint64_t>()));
  };
  show(document.value("counters", ordered_json::object()));
  if (const ordered_json function = document.value("function", ordered_json()); function.is_object()) {
    print(fmt::format("function {}\n", function.value("name", "")));
    show(function.value("counters", ordered_json::object()));
  }
  if (document.contains("error")) say(fmt::format("wherry-bypass: {}", document.value("error", "")));
}

/// The records that are meant: of the NIC named, or all.
Result<std::vector<Record>> records_meant(const CommandOptions& options, const RecordStore& store) {
  if (Status readable = store.readable(); !readable) return readable;
  if (options.nic.empty()) return store.all();
  const auto nic = pci::parse_bus_address(options.nic);
  if (!nic) return nic.status();
  auto record = store.read(*nic);
  if (!record) return record.status();
  std::vector<Record> records;
  if (record->has_value()) records.push_back(**record);
  return records;
}

int finish(const CommandOptions& options, const pci::PciTree& tree, const Candidates& candidates,
           const UpReport& report, const Status& done) {
  const Finding finding = verdict(report);
  if (options.json) {
    print(report_json(tree, candidates, &report, done ? "" : done.message()));
  } else {
    print(path_text(tree, report.path));
    if (report.moved) print(fmt::format("\n{}", preflight_text(report.preflight)));
    for (const std::string& note : report.notes) print(fmt::format("\n{}\n", note));
    if (!done && done.message() != finding.what) say(fmt::format("wherry-bypass: {}", done.message()));
  }
  if (!done && report.finding.cause == Cause::kNone) return status_of(done);
  return static_cast<int>(finding.cause);
}

}  // namespace

int run_probe(const CommandOptions& options, const std::atomic<bool>& stop) {
  const auto found = choose_pair(options);
  if (const int* status = std::get_if<int>(&found)) return *status;
  const auto& [tree, candidates, nic, card] = std::get<Chosen>(found);
  UpReport report;
  Status done;
  if (options.move) {
    UpOptions up = options.up;
    up.nic = nic;
    up.card = card;
    up.sysfs = options.sysfs;
    up.allow_detour = true;  // to move data is the question here
    done = BringUp::probe(linux_parts(options.directory), tree, up, stop, report);
  } else {
    auto path = judge_path(tree, nic, card);
    if (!path) return fail(path.status());
    report.path = *std::move(path);
    report.notes.emplace_back(
        "No data was moved. `wherry bypass probe --move`, as root, takes the NIC from its driver for a "
        "second, and moves some.");
  }
  return finish(options, tree, candidates, report, done);
}

Result<std::optional<FunctionSetup>> function_of(const FunctionWords& words, bool in_place) {
  if (words.name.empty()) {
    if (words.ip.empty() && words.to.empty() && words.rules.empty()) return std::optional<FunctionSetup>();
    return Status(StatusCode::kInvalidArgument, "--ip, --to and --rule are for a function: name it by --function");
  }
  FunctionSetup setup;
  const auto function = function_of(words.name);
  if (!function) return Status(StatusCode::kInvalidArgument, fmt::format("no function is called '{}'", words.name));
  setup.function = *function;
  setup.udp_port = words.udp_port;
  setup.generator = {.bytes = words.bytes, .interval = words.interval, .count = words.count};
  if (!words.ip.empty()) {
    WHERRY_ASSIGN(setup.ip, parse_ipv4_address(words.ip));
  }
  if (!words.to.empty()) {
    WHERRY_ASSIGN(setup.generator.to, parse_ethernet_address(words.to));
  }
  for (const std::string& text : words.rules) {
    WHERRY_ASSIGN(const FilterRule rule, parse_filter_rule(text));
    setup.rules.push_back(rule);
  }
  WHERRY_TRY(check_function(setup, in_place));
  return std::optional(std::move(setup));
}

int run_up(const CommandOptions& options, const std::atomic<bool>& stop) {
  auto function = function_of(options.function, options.up.in_place);
  if (!function) return fail(function.status());
  const auto found = choose_pair(options);
  if (const int* status = std::get_if<int>(&found)) return *status;
  const auto& [tree, candidates, nic, card] = std::get<Chosen>(found);
  UpOptions up = options.up;
  up.nic = nic;
  up.card = card;
  up.sysfs = options.sysfs;
  up.function = *std::move(function);
  UpReport report;
  auto running = BringUp::begin(linux_parts(options.directory), tree, up, stop, report);
  if (!running) return finish(options, tree, candidates, report, running.status());
  if (options.json)
    print(status_text(**running));
  else
    print(fmt::format(
        "{}{}The card {} drives the NIC {}. This process may be stopped (SIGSTOP) and not ended: Ctrl-C, or "
        "`wherry bypass down`, gives both back.\n",
        path_text(tree, report.path), report.moved ? preflight_text(report.preflight) : "", card.text(), nic.text()));
  for (const std::string& note : report.notes) say(note);
  (void)std::fflush(stdout);
  const std::string socket = RecordStore(options.directory).socket_of(nic);
  Status served = serve_status(socket, [&] { return status_text(**running); }, stop);
  Status ended = (*running)->end();
  if (!served) return fail(served);
  if (!ended) return fail(ended);
  return 0;
}

int run_status(const CommandOptions& options) {
  const RecordStore store(options.directory);
  const auto records = records_meant(options, store);
  if (!records) return fail(records.status());
  if (records->empty()) {
    say("wherry-bypass: no card drives a NIC: `wherry bypass up` starts one");
    return static_cast<int>(Cause::kNoHardware);
  }
  int worst = 0;
  for (const Record& record : *records) {
    if (!RecordStore::alive(record)) {
      say(fmt::format(
          "wherry-bypass: process {} of NIC {} has ended without giving it back: `wherry bypass down` mends that",
          record.pid, record.nic.text()));
      worst = kFailed;
      continue;
    }
    const auto text = ask_status(store.socket_of(record.nic), 2s);
    if (!text) {
      worst = fail(text.status());
      continue;
    }
    if (options.json)
      print(*text);
    else
      show_status(*text);
  }
  return worst;
}

int run_down(const CommandOptions& options) {
  const RecordStore store(options.directory);
  const auto records = records_meant(options, store);
  if (!records) return fail(records.status());
  if (records->empty()) say("nothing to do: no card drives a NIC");
  int worst = 0;
  const pci::Binding binding(pci::linux_kernel(), options.sysfs);
  for (const Record& record : *records) {
    if (RecordStore::alive(record)) {
      // A stopped process takes the signal once it goes on.
      ::kill(record.pid, SIGTERM);
      ::kill(record.pid, SIGCONT);
      const Deadline deadline(kEndLimit);
      while (RecordStore::alive(record) && !deadline.passed()) std::this_thread::sleep_for(20ms);
      if (RecordStore::alive(record)) {
        worst = fail({StatusCode::kDeadlineExceeded, fmt::format("process {} does not end", record.pid)});
        continue;
      }
    }
    const auto left = store.read(record.nic);
    if (!left) {
      worst = fail(left.status());
      continue;
    }
    if (left->has_value()) {  // it was killed, or could not give back all
      const auto mended = store.mend(**left, binding);
      if (!mended) {
        worst = fail(mended.status());
        continue;
      }
      for (const std::string& line : *mended) print(line + "\n");
    }
    const std::string driver = binding.driver_of(record.nic);
    print(fmt::format("{} has {} again\n", record.nic.text(),
                      driver.empty() ? "no driver" : fmt::format("driver {}", driver)));
  }
  return worst;
}

}  // namespace wherry::bypass
