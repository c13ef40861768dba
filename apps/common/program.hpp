// SPDX-License-Identifier: Apache-2.0
// The frame of an application: its command line, the job that it joins, and its output at the end: a line of JSON for
// programs and a summary for people.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "common/summary.hpp"
#include "wherry/route.hpp"

namespace wherry::apps {

/// What a rank reports.
struct Report {
  double seconds = 0;          ///< of the computation, without input and output; the slowest rank counts
  Work work;                   ///< of all ranks; rank 0's is printed, with its rate
  std::uint64_t checksum = 0;  ///< of the rank's part of the result; the sum does not depend on the number of ranks
  nlohmann::ordered_json fields = nlohmann::ordered_json::object();  ///< further ones; rank 0's are printed
};

class Program {
 public:
  /// `about`: the first lines of --help.
  Program(std::string name, const std::string& about);

  CLI::App& command_line() noexcept { return cli_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Prefix of the result files' names. Empty: write none.
  [[nodiscard]] const std::string& output() const noexcept { return output_; }

  /// Parses the command line, joins the job, runs `body` and reports. Returns the exit status of main.
  int run(int argc, char** argv, const std::function<Status(route::Runtime&, Report&)>& body);

 private:
  Status report(route::Runtime& runtime, Report mine) const;

  std::string name_;
  CLI::App cli_;
  std::uint64_t seed_ = 1;
  std::string output_, json_;
};

}  // namespace wherry::apps
