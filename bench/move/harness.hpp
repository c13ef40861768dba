// SPDX-License-Identifier: Apache-2.0
// The common parts of every experiment: the session, the service in the agent, statistics, errors, Ctrl-C.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "children.hpp"
#include "common/measure.hpp"
#include "common/report.hpp"
#include "options.hpp"
#include "remote.hpp"
#include "wherry/move.hpp"

namespace wherry::bench {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

inline double gbps(std::size_t bytes, double ns) { return static_cast<double>(bytes) * 8 / ns; }
std::string size_text(std::size_t bytes);

struct Bench {
  const Options& options;
  Session& session;
  Remote& remote;
  Children& children;
  Report& report;

  [[nodiscard]] int rounds() const noexcept { return options.quick ? 5 : 11; }
  /// The elements of `all` that this run's options and this machine's memory allow. With --quick only `quick`.
  [[nodiscard]] std::vector<std::size_t> sizes(std::vector<std::size_t> all, std::vector<std::size_t> quick) const;
  /// A line on stderr.
  void progress(const std::string& text) const;
  /// A stream that keeps one frame, so that its frames take turns in two pieces of memory. Opening a name again frees
  /// its last frame.
  Stream open(const std::string& name, Strategy strategy, const Schema& schema, std::size_t bytes) const;
};

/// Waits until the ticket is ready, without a system call, as an application that computes meanwhile with warm caches.
void spin(const Ticket& ticket);
/// The agent's time from the first get to the last byte in place. Throws if the offload failed.
double transfer_ns(const Ticket& ticket);

void run_initiate(Bench& bench);
void run_bandwidth(Bench& bench);
void run_mapped(Bench& bench);
void run_buffers(Bench& bench);
void run_conversion(Bench& bench);
void run_approaches(Bench& bench);
void run_flight(Bench& bench);
void run_profile(Bench& bench);

}  // namespace wherry::bench
