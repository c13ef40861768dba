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
#include "bypass/process/answer.hpp"
#include "bypass/process/status_server.hpp"
#include "bypass/process/text.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;
using nlohmann::ordered_json;

constexpr auto kEndLimit = 30s;  // of a process that is to give back: resets, and a kernel driver's probe

void print(const std::string& text) { (void)std::fwrite(text.data(), 1, text.size(), stdout); }
void print_answer(const ordered_json& answer) { print(answer.dump(2) + "\n"); }
void say(const std::string& text) { error_line(text); }

int status_of(const Status& status) { return status.code() == StatusCode::kInvalidArgument ? kWrongCall : kFailed; }

/// Prints the reason as text and, if requested, as JSON. The command has no findings in this case.
int fail(const CommandOptions& options, std::string_view command, int status, const std::string& sentence) {
  if (options.json) print_answer(answer_of({.command = command, .status = status, .error = sentence}));
  say(fmt::format("wherry-bypass: {}", sentence));
  return status;
}

int fail(const CommandOptions& options, std::string_view command, const Status& status) {
  return fail(options, command, status_of(status), status.message());
}

/// The machine, and its selected NIC and card.
struct Chosen {
  pci::PciTree tree;
  Candidates candidates;
  pci::BusAddress nic{}, card{};
};

/// kNotFound if the named NIC is not one that Wherry drives.
Status known_nic(const pci::PciTree& tree, const Result<pci::BusAddress>& nic) {
  if (!nic) return nic.status();
  const pci::PciFunction* function = tree.find(*nic);
  if (function != nullptr && personality_of(function->vendor, function->device) != nullptr) return {};
  return {StatusCode::kNotFound, fmt::format("{} is not a NIC that bypass knows", nic->text())};
}

/// Returns the pair, or an exit status after the reason was printed.
std::variant<Chosen, int> choose_pair(const CommandOptions& options, std::string_view command) {
  auto tree = pci::PciTree::read(options.sysfs);
  if (!tree) return fail(options, command, static_cast<int>(Cause::kNoHardware), tree.status().message());
  Candidates candidates = find_candidates(*tree);
  const auto nic = choose(*tree, candidates.nics, options.nic, "NIC that is known");
  const auto card = choose(*tree, candidates.cards, options.card, "FPGA card with a window of 8 MiB");
  const Status known = known_nic(*tree, nic);
  if (known && card) return Chosen{*std::move(tree), std::move(candidates), *nic, *card};
  const Status& why = known ? card.status() : known;
  Outcome outcome{.command = command, .status = status_of(why), .error = why.message()};
  if (why.code() == StatusCode::kNotFound) {
    outcome.status = static_cast<int>(Cause::kNoHardware);
    outcome.error += ": bypass needs a NIC that it drives and an FPGA card.";
  }
  if (options.json)
    print_answer(report_json(outcome, *tree, candidates, nullptr));
  else
    print(candidates_text(*tree, candidates));
  say(fmt::format("wherry-bypass: {}", outcome.error));
  return outcome.status;
}

/// The state of a card that drives a NIC. `error`: the reason if the counters are missing, else null.
ordered_json driven_by(BringUp& up) {
  const Link link = up.nic().link();
  ordered_json driven{{"nic", up.options().nic.text()},
                      {"card", up.options().card.text()},
                      {"pid", getpid()},
                      {"error", nullptr},
                      {"personality", up.nic().personality().name},
                      {"mac", text_of(up.nic().mac())},
                      {"link", {{"up", link.up}, {"mbits", link.mbits}}},
                      {"running", up.card().running()},
                      {"rings", up.host_counters() != nullptr ? "host" : "card"}};
  if (const auto counters = up.card().counters()) {
    driven["counters"] = ordered_json::object();
    for (const Counter& counter : *counters) driven["counters"][std::string(counter.name)] = counter.value;
  } else {
    driven["error"] = counters.status().message();
  }
  if (const HostRingsCounters* host = up.host_counters()) {
    driven["host_rings"] = {{"received", host->received},
                            {"transmitted", host->transmitted},
                            {"copies", host->copies},
                            {"copied_bytes", host->copied_bytes},
                            {"window_writes", host->window_writes},
                            {"tails", host->tails},
                            {"turns", host->turns},
                            {"idle_turns", host->idle_turns}};
  }
  if (const auto functions = Functions::open(up.card().access())) {
    ordered_json counted = ordered_json::object();
    for (const auto& [name, value] : functions->counters()) counted[name] = value;
    driven["function"] = {{"name", name_of(functions->running())}, {"counters", std::move(counted)}};
  }
  return driven;
}

void show(const ordered_json& driven) {
  const ordered_json link = driven.value("link", ordered_json::object());
  print(fmt::format("NIC {}, card {}, process {}: {}, link {}\n", driven.value("nic", ""), driven.value("card", ""),
                    driven.value("pid", 0), driven.value("running", false) ? "runs" : "does not run",
                    link.value("up", false) ? fmt::format("up at {} Mbit/s", link.value("mbits", 0)) : "down"));
  const auto show_counters = [](const ordered_json& counters) {
    for (const auto& [name, value] : counters.items())
      if (value.is_number_unsigned() && value != 0)
        print(fmt::format("  {:16} {}\n", name, value.get<std::uint64_t>()));
  };
  show_counters(driven.value("counters", ordered_json::object()));
  if (const ordered_json host = driven.value("host_rings", ordered_json()); host.is_object()) {
    print("rings in the host's memory\n");
    show_counters(host);
  }
  if (const ordered_json function = driven.value("function", ordered_json()); function.is_object()) {
    print(fmt::format("function {}\n", function.value("name", "")));
    show_counters(function.value("counters", ordered_json::object()));
  }
}

/// The records that the command is for: the named NIC's, or all.
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

int finish(const CommandOptions& options, std::string_view command, const pci::PciTree& tree,
           const Candidates& candidates, const UpReport& report, const Status& done) {
  const Finding finding = verdict(report);
  Outcome outcome{.command = command, .status = static_cast<int>(finding.cause), .error = finding.what};
  if (!done) {
    if (report.finding.cause == Cause::kNone) outcome.status = status_of(done);
    outcome.error = done.message();
  }
  if (options.json) {
    print_answer(report_json(outcome, tree, candidates, &report));
  } else {
    print(path_text(tree, report.path));
    if (report.moved) print(fmt::format("\n{}", preflight_text(report.preflight)));
    for (const std::string& note : report.notes) print(fmt::format("\n{}\n", note));
  }
  if (!done && (options.json || done.message() != finding.what)) say(fmt::format("wherry-bypass: {}", done.message()));
  return outcome.status;
}

/// Asks the process that drives a record's NIC. If it does not answer, `error` gives the reason and the remedy.
ordered_json ask(const Record& record, const RecordStore& store) {
  ordered_json driven{
      {"nic", record.nic.text()}, {"card", record.card.text()}, {"pid", record.pid}, {"error", nullptr}};
  if (!RecordStore::alive(record)) {
    driven["error"] =
        fmt::format("process {} of NIC {} has ended without giving it back: `wherry bypass down` mends that",
                    record.pid, record.nic.text());
    return driven;
  }
  const auto text = ask_status(store.socket_of(record.nic), 2s);
  if (!text) {
    driven["error"] = text.status().message();
    return driven;
  }
  ordered_json said = ordered_json::parse(*text, nullptr, false);
  if (said.is_object() && said.contains("error")) return said;
  driven["error"] = fmt::format("process {} of NIC {} says what cannot be understood", record.pid, record.nic.text());
  return driven;
}

/// Ends the process that drives a record's NIC, and gives back what it left taken. Returns sentences about the repairs.
Result<std::vector<std::string>> give_back(const Record& record, const RecordStore& store,
                                           const pci::Binding& binding) {
  if (RecordStore::alive(record)) {
    // A stopped process receives the signal only when it continues.
    ::kill(record.pid, SIGTERM);
    ::kill(record.pid, SIGCONT);
    const Deadline deadline(kEndLimit);
    while (RecordStore::alive(record) && !deadline.passed()) std::this_thread::sleep_for(20ms);
    if (RecordStore::alive(record))
      return Status(StatusCode::kDeadlineExceeded, fmt::format("process {} does not end", record.pid));
  }
  WHERRY_ASSIGN(const auto left, store.read(record.nic));
  if (!left) return std::vector<std::string>();
  return store.mend(*left, binding);  // it was killed, or could not give back all
}

/// Returns "no card drives a NIC", or a sentence with the named NIC.
std::string nothing_driven(const CommandOptions& options) {
  return options.nic.empty() ? "no card drives a NIC" : fmt::format("no card drives the NIC {}", options.nic);
}

}  // namespace

int run_probe(const CommandOptions& options, const std::atomic<bool>& stop) {
  const auto found = choose_pair(options, "probe");
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
    if (!path) return fail(options, "probe", path.status());
    report.path = *std::move(path);
    report.notes.emplace_back(
        "No data was moved. `wherry bypass probe --move`, as root, takes the NIC from its driver for a "
        "second, and moves some.");
  }
  return finish(options, "probe", tree, candidates, report, done);
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
  if (!function) return fail(options, "up", function.status());
  const auto found = choose_pair(options, "up");
  if (const int* status = std::get_if<int>(&found)) return *status;
  const auto& [tree, candidates, nic, card] = std::get<Chosen>(found);
  UpOptions up = options.up;
  up.nic = nic;
  up.card = card;
  up.sysfs = options.sysfs;
  up.function = *std::move(function);
  UpReport report;
  auto running = BringUp::begin(linux_parts(options.directory), tree, up, stop, report);
  if (!running) return finish(options, "up", tree, candidates, report, running.status());
  if (options.json) {
    ordered_json answer = report_json({.command = "up", .status = 0, .error = {}}, tree, candidates, &report);
    answer["driven"] = ordered_json::array({driven_by(**running)});
    print_answer(answer);
  } else {
    print(fmt::format(
        "{}{}The card {} drives the NIC {}. {}: Ctrl-C, or `wherry bypass down`, gives both back.\n",
        path_text(tree, report.path), report.moved ? preflight_text(report.preflight) : "", card.text(), nic.text(),
        report.in_host ? "This process must run" : "This process may be stopped (SIGSTOP) and not ended"));
  }
  for (const std::string& note : report.notes) say(note);
  (void)std::fflush(stdout);
  const std::string socket = RecordStore(options.directory).socket_of(nic);
  bool broke = false;
  std::function<Status()> work;
  if (report.in_host)
    work = [&] {
      Status turned = (*running)->turn().status();
      broke = !turned;
      return turned;
    };
  Status served = serve_status(socket, [&] { return driven_by(**running).dump(2) + "\n"; }, stop, work);
  Status ended = (*running)->end();
  if (!served && !ended) say(fmt::format("wherry-bypass: {}", ended.message()));
  if (broke) return fail(options, "up", static_cast<int>(Cause::kEngineDead), served.message());
  if (!served) return fail(options, "up", served);
  if (!ended) return fail(options, "up", ended);
  return 0;
}

int run_status(const CommandOptions& options) {
  const RecordStore store(options.directory);
  const auto records = records_meant(options, store);
  if (!records) return fail(options, "status", records.status());
  Outcome outcome{.command = "status", .status = 0, .error = {}};
  ordered_json all = ordered_json::array();
  if (records->empty()) {
    outcome.status = static_cast<int>(Cause::kNoHardware);
    outcome.error = nothing_driven(options) + ": `wherry bypass up` starts one";
    say(fmt::format("wherry-bypass: {}", outcome.error));
  }
  for (const Record& record : *records) {
    ordered_json driven = ask(record, store);
    if (!options.json && driven.contains("running")) show(driven);
    if (driven["error"].is_string()) {
      const std::string why = driven["error"].get<std::string>();
      say(fmt::format("wherry-bypass: {}", why));
      outcome.status = kFailed;
      if (outcome.error.empty()) outcome.error = why;
    }
    all.push_back(std::move(driven));
  }
  if (options.json) {
    ordered_json answer = answer_of(outcome);
    answer["driven"] = std::move(all);
    print_answer(answer);
  }
  return outcome.status;
}

int run_down(const CommandOptions& options) {
  const RecordStore store(options.directory);
  const auto records = records_meant(options, store);
  if (!records) return fail(options, "down", records.status());
  Outcome outcome{.command = "down", .status = 0, .error = {}};
  ordered_json all = ordered_json::array();
  if (records->empty()) {
    // If the NIC is not driven, there is nothing to do. If it does not exist, the name is wrong.
    const auto nic = pci::parse_bus_address(options.nic);
    const auto tree = pci::PciTree::read(options.sysfs);
    if (nic && !(tree && tree->find(*nic) != nullptr))
      return fail(options, "down", static_cast<int>(Cause::kNoHardware),
                  fmt::format("this machine has no PCI function {}, and {}", nic->text(), nothing_driven(options)));
    if (!options.json) say(fmt::format("nothing to do: {}", nothing_driven(options)));
  }
  const pci::Binding binding(pci::linux_kernel(), options.sysfs);
  for (const Record& record : *records) {
    const auto mended = give_back(record, store, binding);
    const std::string driver = binding.driver_of(record.nic);
    ordered_json one{{"nic", record.nic.text()}, {"card", record.card.text()}, {"driver", driver}, {"error", nullptr}};
    if (mended) {
      one["mended"] = *mended;
    } else {
      one["error"] = mended.status().message();
      say(fmt::format("wherry-bypass: {}", mended.status().message()));
      outcome.status = kFailed;
      if (outcome.error.empty()) outcome.error = mended.status().message();
    }
    if (mended && !options.json) {
      for (const std::string& line : *mended) print(line + "\n");
      print(fmt::format("{} has {} again\n", record.nic.text(),
                        driver.empty() ? "no driver" : fmt::format("driver {}", driver)));
    }
    all.push_back(std::move(one));
  }
  if (options.json) {
    ordered_json answer = answer_of(outcome);
    answer["given_back"] = std::move(all);
    print_answer(answer);
  }
  return outcome.status;
}

}  // namespace wherry::bypass
