// SPDX-License-Identifier: Apache-2.0
#include "common/options.hpp"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <map>
#include <optional>

namespace wherry::apps {
namespace {

/// Returns NaN if the text is not a number.
double parse(const std::string& text) {
  std::size_t used = 0;
  try {
    const double value = std::stod(text, &used);
    return used == text.size() ? value : std::nan("");
  } catch (const std::exception&) {
    return std::nan("");
  }
}

/// A whole number in digits, or in a form such as 1e6. The latter ends at 2^53, where a double stops being exact.
std::optional<std::uint64_t> parse_whole(const std::string& text) {
  std::uint64_t digits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), digits);
  if (end == text.data() + text.size() && !text.empty())
    return error == std::errc() ? std::optional(digits) : std::nullopt;
  const double number = parse(text);
  if (number >= 0 && number <= 0x1p53 && number == std::floor(number)) return static_cast<std::uint64_t>(number);
  return std::nullopt;
}

}  // namespace

void add_count(CLI::App& cli, const std::string& name, std::uint64_t& value, const std::string& what, std::uint64_t max,
               std::uint64_t min) {
  const auto read = [&value](const std::string& text) { value = parse_whole(text).value_or(0); };
  const auto check = [min, max](const std::string& text) {
    const auto number = parse_whole(text);
    if (number && *number >= min && *number <= max) return std::string();
    return fmt::format("want a whole number from {} to {}, not '{}'", min, max, text);
  };
  cli.add_option_function<std::string>(name, read, what)
      ->check(check)
      ->type_name("N")
      ->default_str(std::to_string(value));
}

void add_number(CLI::App& cli, const std::string& name, double& value, const std::string& what, double min) {
  const auto check = [min](const std::string& text) {
    const double number = parse(text);
    if (std::isfinite(number) && number >= min) return std::string();
    return fmt::format("want a number from {} on, not '{}'", min, text);
  };
  cli.add_option(name, value, what)->check(check)->type_name("X")->capture_default_str();
}

CLI::Validator finite_range(double min, double max) {
  const auto check = [min, max](const std::string& text) {
    const double number = parse(text);
    if (number >= min && number <= max) return std::string();
    return fmt::format("want a number from {} to {}, not '{}'", min, max, text);
  };
  return {check, ""};
}

void add_distribution(CLI::App& cli, Distribution::Kind& kind, const std::string& things) {
  static const std::map<std::string, Distribution::Kind> kKinds{{"cyclic", Distribution::Kind::kCyclic},
                                                                {"block", Distribution::Kind::kBlock}};
  const auto read = [&kind](const std::string& text) { kind = kKinds.at(text); };
  cli.add_option_function<std::string>(
         "--distribution", read, fmt::format("how the {} are distributed over the ranks: cyclic or block", things))
      ->check(CLI::IsMember(kKinds))
      ->type_name("KIND")
      ->default_str(kind == Distribution::Kind::kCyclic ? "cyclic" : "block");
}

void add_input_options(CLI::App& cli, InputOptions& options, const std::string& rows, bool with_values) {
  auto* file = cli.add_option("--matrix", options.file, "read this Matrix Market file, general or symmetric")
                   ->type_name("FILE.mtx");
  add_count(cli, "--rows", options.rows, rows + " to generate", kMaxElements);
  add_count(cli, "--degree", options.degree, "entries of each, including those drawn twice", kMaxElements);
  file->excludes("--rows")->excludes("--degree");
  if (with_values) cli.add_flag("--real", options.real, "values in (0, 1], not integers from 1 to 100")->excludes(file);
  add_distribution(cli, options.distribution, rows);
  cli.add_option("--save-input", options.save, "write the matrix: each rank writes its rows to PREFIX.<rank>.mtx")
      ->type_name("PREFIX");
}

}  // namespace wherry::apps
