// SPDX-License-Identifier: Apache-2.0
#include "probe/process/lines.hpp"

#include <fmt/core.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>

#include "base/machine.hpp"
#include "base/version.hpp"
#include "fabric/fabric.hpp"
#include "probe/cores.hpp"
#include "probe/environment.hpp"

namespace wherry::probe {
namespace {

using Json = nlohmann::json;

template <typename Enum, std::size_t kCount>
const char* word(Enum value, const std::array<const char*, kCount>& words) noexcept {
  const auto at = static_cast<std::size_t>(value);
  return at < kCount ? words[at] : "unknown";
}

Json shape_of(const char* kind, const Cell& cell) {
  const Shape& shape = cell.shape;
  return {{"kind", kind},
          {"id", cell.path->info().id},
          {"bytes", shape.bytes},
          {"depth", shape.depth},
          {"channels", shape.channels},
          {"pattern", word_of(shape.pattern)},
          {"flow", word_of(shape.flow)},
          {"notice", word_of(shape.notice)},
          {"cache", word_of(shape.cache)},
          {"align", shape.align},
          {"load", cell.offered_share > 0 ? "open" : "closed"},
          {"series", cell.series}};
}

}  // namespace

const char* word_of(Initiator initiator) noexcept { return word(initiator, std::array{"host", "device"}); }
const char* word_of(Provenance provenance) noexcept {
  return word(provenance, std::array{"measured", "simulated", "modelled"});
}
const char* word_of(Flow flow) noexcept { return word(flow, std::array{"h2c", "c2h", "both"}); }
const char* word_of(Notice notice) noexcept { return word(notice, std::array{"polled", "interrupt", "blocking"}); }
const char* word_of(Pattern pattern) noexcept { return word(pattern, std::array{"sequential", "strided", "random"}); }
const char* word_of(CacheState cache) noexcept { return word(cache, std::array{"warm", "flushed", "remote"}); }

void Lines::write(const std::string& line) {
  if (lost_) return;
  lost_ = std::fputs((line + "\n").c_str(), out_) < 0 || std::fflush(out_) != 0;
  if (lost_) (void)std::raise(SIGTERM);  // nobody reads: the run ends as after Ctrl-C
}

void Lines::start(const MachineClock& clock, const HarnessCost& harness, const RunOptions& options, std::size_t cells) {
  auto here = environment();
  here["cores"] = std::to_string(cores().count);
  here["other_side"] = cores().relation;
  here["ucx"] = fabric::ucx_version();
  here["clock"] = clock.name();
  begun_ns_ = last_ns_ = clock_.now_ns();
  write(Json{{"kind", "start"},
             {"wherry", kVersion},
             {"environment", here},
             {"machine_key", fmt::format("{} | UCX {}", to_string(this_machine()), fabric::ucx_version())},
             {"clock_ghz", clock.ghz()},
             {"clock_resolution_ns", clock.resolution_ns()},
             {"harness_batched_ns", harness.batched_ns},
             {"harness_timed_ns", harness.timed_ns},
             {"cells", cells},
             {"rounds", options.rounds},
             {"seed", options.seed}}
            .dump());
}

void Lines::path(const PathInfo& info) {
  write(Json{{"kind", "path"},
             {"id", info.id},
             {"group", info.group},
             {"from", info.from},
             {"to", info.to},
             {"initiator", word_of(info.initiator)},
             {"provenance", word_of(info.provenance)},
             {"absent", info.absent},
             {"note", info.note}}
            .dump());
}

void Lines::end(const Outcome& outcome) {
  write(Json{{"kind", "end"},
             {"measured", outcome.measured},
             {"wrong", outcome.wrong},
             {"refused", outcome.refused},
             {"failed", outcome.failed},
             {"stopped", outcome.stopped},
             {"seconds", static_cast<double>(outcome.elapsed_ns) / 1e9}}
            .dump());
}

void Lines::on_progress(std::size_t visits, std::size_t of, const Cell& next) {
  const std::uint64_t now = clock_.now_ns();
  if (now - last_ns_ < every_ns_) return;
  last_ns_ = now;
  Json line = shape_of("progress", next);
  line["done"] = visits;
  line["of"] = of;
  line["seconds"] = static_cast<double>(now - begun_ns_) / 1e9;
  write(line.dump());
}

void Lines::on_row(const Cell& cell, const Row& row) {
  Json line = shape_of("row", cell);
  line.update({{"p50_ns", row.p50_ns},
               {"p90_ns", row.p90_ns},
               {"p99_ns", row.p99_ns},
               {"p999_ns", row.p999_ns},
               {"max_ns", row.max_ns},
               {"gbytes_per_s", row.gbytes_per_s},
               {"transfers_per_s", row.transfers_per_s},
               {"offered_per_s", row.offered_per_s},
               {"cpu_user_ns", row.cpu_user_ns},
               {"cpu_system_ns", row.cpu_system_ns},
               {"other_user_ns", row.other_user_ns},
               {"other_system_ns", row.other_system_ns},
               {"least", row.least},
               {"most", row.most},
               {"rounds", row.rounds},
               {"disturbed", row.disturbed},
               {"warm", row.warm},
               {"p50_undisturbed_ns", row.p50_undisturbed_ns},
               {"variation", row.variation},
               {"unsettled", row.unsettled},
               {"samples", row.samples},
               {"batch", row.batch},
               {"bound_gbytes_per_s", row.bound_gbytes_per_s},
               {"bound_why", row.bound_why},
               {"refused", row.refused}});
  write(line.dump());
}

void Lines::on_wrong(const Cell& cell, const std::string& why) {
  Json line = shape_of("wrong", cell);
  line["why"] = why;
  write(line.dump());
}

void Lines::on_failed(const Cell& cell, const std::string& why) {
  Json line = shape_of("failed", cell);
  line["why"] = why;
  write(line.dump());
}

}  // namespace wherry::probe
