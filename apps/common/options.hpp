// SPDX-License-Identifier: Apache-2.0
// Options that several applications have.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "common/matrix.hpp"

namespace wherry::apps {

/// What Distribution and below() take.
inline constexpr std::uint64_t kMaxElements = (std::uint64_t{1} << 32) - 1;

/// A whole number, `least` to `most`; 1e6 is understood too.
void add_count(CLI::App& cli, const std::string& name, std::uint64_t& value, const std::string& what,
               std::uint64_t most = std::uint64_t{1} << 53, std::uint64_t least = 1);

/// --distribution, of `things` over the ranks.
void add_distribution(CLI::App& cli, Distribution::Kind& kind, const std::string& things);

/// A finite number, at least `least`.
void add_number(CLI::App& cli, const std::string& name, double& value, const std::string& what, double least = 0);

/// A check that CLI::Range is not: it also refuses what is not a number.
CLI::Validator finite_range(double least, double most);

/// Of a matrix: read, or generated. `rows`: what the application calls them. Values are offered where they matter.
void add_input_options(CLI::App& cli, InputOptions& options, const std::string& rows, bool with_values);

}  // namespace wherry::apps
