// SPDX-License-Identifier: Apache-2.0
// The output of wherry-probe: one JSON object a line (docs/guide/probe.md, Lines).
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "probe/runner.hpp"
#include "probe/timer.hpp"

namespace wherry::probe {

class Lines final : public Listener {
 public:
  /// Writes progress at most once in `progress_ns`.
  Lines(std::FILE* out, Clock& clock, std::uint64_t progress_ns) : out_(out), clock_(clock), every_ns_(progress_ns) {}

  void start(const MachineClock& clock, const HarnessCost& harness, const RunOptions& options, std::size_t cells);
  void path(const PathInfo& info);
  void end(const Outcome& outcome);
  /// Whether a line could not be written because the reader has closed its end.
  [[nodiscard]] bool lost() const noexcept { return lost_; }

  void on_progress(std::size_t visits, std::size_t of, const Cell& next) override;
  void on_row(const Cell& cell, const Row& row) override;
  void on_wrong(const Cell& cell, const std::string& why) override;
  void on_failed(const Cell& cell, const std::string& why) override;

 private:
  void write(const std::string& line);

  std::FILE* out_;
  Clock& clock_;
  std::uint64_t every_ns_;
  std::uint64_t begun_ns_ = 0, last_ns_ = 0;
  bool lost_ = false;
};

/// The words for enumeration values in the lines.
[[nodiscard]] const char* word_of(Initiator initiator) noexcept;
[[nodiscard]] const char* word_of(Provenance provenance) noexcept;
[[nodiscard]] const char* word_of(Flow flow) noexcept;
[[nodiscard]] const char* word_of(Notice notice) noexcept;
[[nodiscard]] const char* word_of(Pattern pattern) noexcept;
[[nodiscard]] const char* word_of(CacheState cache) noexcept;

}  // namespace wherry::probe
