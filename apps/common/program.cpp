// SPDX-License-Identifier: Apache-2.0
#include "common/program.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <new>
#include <stdexcept>

#include "common/npy.hpp"
#include "common/options.hpp"
#include "common/together.hpp"

namespace wherry::apps {

using Json = nlohmann::ordered_json;
using route::Runtime;
using route::Statistics;

namespace {

/// Standard error. Never throws; fmt::print would, if standard output is closed. Then only the status reports it.
void complain(const std::string& line) noexcept { (void)std::fputs(line.c_str(), stderr); }

}  // namespace

Program::Program(std::string name, const std::string& about) : name_(std::move(name)), cli_(about, name_) {
  add_count(cli_, "--seed", seed_, "random seed. Results do not depend on the number of ranks", ~std::uint64_t{0}, 0);
  cli_.add_option("--output", output_, "write the result: each rank writes its part to PREFIX.<rank>...")
      ->type_name("PREFIX");
  cli_.add_option("--json", json_,
                  "write the closing line of JSON to this file, not to standard output, which it goes to unless that "
                  "is a terminal")
      ->type_name("FILE");
}

int Program::run(int argc, char** argv, const std::function<Status(Runtime&, Report&)>& body) {
  cli_.footer(
      fmt::format("Started alone, the program is one rank. To run more ranks, on one or more nodes:\n"
                  "  wherry run --nodes 2 --ranks-per-node 2 -- {}\n"
                  "docs/guide/route-apps.md explains how it works and what the JSON holds.",
                  argc > 0 ? argv[0] : name_.c_str()));
  try {
    cli_.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return cli_.exit(error);
  }
  auto runtime = Runtime::start();
  if (!runtime) {
    complain(fmt::format("{}: {}\n", name_, runtime.status().message()));
    return 1;
  }
  Report mine;
  Status status;
  const auto no_memory = [] {
    return Status(StatusCode::kResourceExhausted,
                  "there is not enough memory for what the options ask for: make it smaller, or spread it over more "
                  "machines");
  };
  try {
    status = body(*runtime, mine);
    if (status) status = report(*runtime, std::move(mine));
  } catch (const std::bad_alloc&) {
    status = no_memory();
  } catch (const std::length_error&) {  // more elements than a vector can have
    status = no_memory();
  }
  if (status) return 0;
  complain(fmt::format("{}: rank {}: {}\n", name_, runtime->rank(), status.message()));
  return 1;
}

Status Program::report(Runtime& runtime, Report mine) const {
  const Statistics statistics = runtime.statistics();  // before the reductions add to them
  Status status;
  const auto all = [&](auto value, Runtime::Combine how) {
    const auto combined = status ? runtime.reduce(value, how) : Result<decltype(value)>(value);
    if (!combined) status = combined.status();
    return combined ? *combined : value;
  };
  using enum Runtime::Combine;
  Json line{{"app", name_},
            {"ranks", runtime.ranks()},
            {"nodes", runtime.nodes()},
            {"placement", to_string(runtime.placement())},
            {"seconds", all(mine.seconds, kMax)},
            {"checksum", fmt::format("{:016x}", all(mine.checksum, kSum))},
            {"messages", all(statistics.sent, kSum)},
            {"bytes", all(statistics.bytes_out, kSum)}};
  line.update(mine.fields);
  const auto seconds = line["seconds"].get<double>();
  if (!mine.work.many.empty() && seconds > 0)
    line[mine.work.many + "_per_second"] = static_cast<double>(mine.work.count) / seconds;
  line["statistics"] = Json{{"sent", line["messages"]},
                            {"handled", all(statistics.handled, kSum)},
                            {"forwarded_bytes", all(statistics.forwarded_bytes, kSum)},
                            {"bytes_out", line["bytes"]},
                            {"bytes_in", all(statistics.bytes_in, kSum)},
                            {"transfers", all(statistics.transfers, kSum)},
                            {"flush_full", all(statistics.flush_full, kSum)},
                            {"flush_idle", all(statistics.flush_idle, kSum)},
                            {"flush_timeout", all(statistics.flush_timeout, kSum)},
                            {"flush_explicit", all(statistics.flush_explicit, kSum)},
                            {"would_block", all(statistics.would_block, kSum)},
                            {"backlog_high", all(statistics.backlog_high, kMax)}};
  if (!status) return status;
  if (runtime.rank() == 0) {
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    if (json_.empty()) {
      if (!terminal) fmt::print("{}\n", line.dump());
    } else {
      make_parent(json_);
      std::ofstream file(json_);
      file << line.dump() << '\n';
      file.close();
      if (!file) status = {StatusCode::kUnavailable, fmt::format("cannot write {}: {}", json_, std::strerror(errno))};
    }
    const std::string people = summary(line, mine.work);
    if (terminal)
      fmt::print("{}", people);
    else
      complain(people);
  }
  return together(runtime, std::move(status));
}

}  // namespace wherry::apps
