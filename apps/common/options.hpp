// SPDX-License-Identifier: Apache-2.0
// Command-line options that several applications share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "common/matrix.hpp"

namespace wherry::apps {

/// The largest number that Distribution and below() accept.
inline constexpr std::uint64_t kMaxElements = (std::uint64_t{1} << 32) - 1;

/// A whole number from `min` to `max`, also in the form 1e6.
void add_count(CLI::App& cli, const std::string& name, std::uint64_t& value, const std::string& what,
               std::uint64_t max = std::uint64_t{1} << 53, std::uint64_t min = 1);

/// Adds --distribution, which says how `things` are distributed over the ranks.
void add_distribution(CLI::App& cli, Distribution::Kind& kind, const std::string& things);

/// A finite number of at least `min`.
void add_number(CLI::App& cli, const std::string& name, double& value, const std::string& what, double min = 0);

/// Like CLI::Range, but also refuses "nan".
CLI::Validator finite_range(double min, double max);

/// Adds the options of a matrix that is read from a file or generated. `rows`: the application's word for them.
/// `with_values`: its entries have values.
void add_input_options(CLI::App& cli, InputOptions& options, const std::string& rows, bool with_values);

}  // namespace wherry::apps
