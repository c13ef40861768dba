// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/load/sweep.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace wherry::sim::shell::load {
namespace {

using nlohmann::json;

constexpr std::array<std::uint32_t, 7> kSizes{64, 128, 256, 512, 1024, 2048, 4096};
constexpr std::array kShares{0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95};
constexpr std::array kTogetherShares{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0};

const PathName& name_of(Path path) {
  return *std::ranges::find_if(paths(), [&](const PathName& one) { return one.path == path; });
}

class Sweep {
 public:
  Sweep(const Parameters& parameters, std::uint32_t packets) : parameters_(parameters), packets_(packets) {}

  json rows() {
    for (const PathName& path : paths())
      for (const std::uint32_t bytes : kSizes) alone(path.path, bytes);
    for (const std::uint32_t bytes : {64U, 1024U, 4096U}) {
      together("network to host and to HBM", bytes, {Path::kWireToHost, Path::kWireToHbm});
      together("host and HBM to network", bytes, {Path::kHostToWire, Path::kHbmToWire});
      together("cases 1 and 2, both ways", bytes,
               {Path::kWireToHost, Path::kHostToWire, Path::kWireToHbm, Path::kHbmToWire});
      together("all three cases, both ways", bytes,
               {Path::kWireToHost, Path::kHostToWire, Path::kWireToHbm, Path::kHbmToWire, Path::kHostToHbm,
                Path::kHbmToHost});
    }
    return std::exchange(rows_, json::array());
  }

  json variants() {
    using Change = void (*)(Limits&);
    struct Variant {
      const char* name;
      Path path;
      std::vector<std::uint32_t> sizes;
      Change change;
    };
    const std::vector<Variant> all{
        {"one queue", Path::kWireToHost, {64, 1024}, [](Limits& l) { l.queues = 1; }},
        {"64 queues", Path::kWireToHost, {64, 1024}, [](Limits& l) { l.queues = 64; }},
        {"prefetch of 8 descriptors", Path::kWireToHost, {64, 1024}, [](Limits& l) { l.prefetch = 8; }},
        {"completions of 64 bytes", Path::kWireToHost, {64, 1024}, [](Limits& l) { l.completion = 64; }},
        {"polled ring", Path::kWireToHost, {64, 1024}, [](Limits& l) { l.interrupts = 0; }},
        {"one queue", Path::kHostToWire, {64, 1024}, [](Limits& l) { l.queues = 1; }},
        {"64 queues", Path::kHostToWire, {64, 1024}, [](Limits& l) { l.queues = 64; }},
        {"six reads under way", Path::kHbmToWire, {64, 1024, 4096}, [](Limits& l) { l.mover_reads = 6; }},
        {"one transaction in the engine",
         Path::kHbmToHost,
         {64, 1024, 4096},
         [](Limits& l) { l.memory_order = kEngineSerial; }},
        {"transactions overlap", Path::kHbmToHost, {64, 1024, 4096}, [](Limits& l) { l.memory_order = kOverlap; }}};
    json found = json::array();
    for (const Variant& variant : all) {
      for (const std::uint32_t bytes : variant.sizes) {
        LoadOptions options = saturating(variant.path, bytes);
        variant.change(options.limits);
        const LoadFound loaded = load::run(options);
        options.flows[0].gbytes_per_s = 0.5 * loaded.flows[0].gbytes_per_s;
        options.regular = false;
        const LoadFound half = load::run(options);
        const PathName& name = name_of(variant.path);
        found.push_back({{"variant", variant.name},
                         {"case", name.number},
                         {"way", name.name},
                         {"bytes", bytes},
                         {"gbytes_per_s", loaded.flows[0].gbytes_per_s},
                         {"usual_gbytes_per_s", most_.at({variant.path, bytes})},
                         {"half_mean_ns", half.flows[0].mean_ns},
                         {"half_told_ns", half.flows[0].told_ns},
                         {"wrong", loaded.wrong + half.wrong}});
      }
    }
    return found;
  }

 private:
  /// Runs with small packets have more of them, because a run must be long compared with a packet's latency.
  [[nodiscard]] LoadOptions base(std::uint32_t bytes) const {
    return {.packets = packets_ * std::max(1U, 512 / bytes), .parameters = parameters_};
  }

  /// Above the bound, so that the shell sets the rate. Long enough for descriptors to reach a steady flow, and for the
  /// FIFOs to be full for most of the run.
  [[nodiscard]] LoadOptions saturating(Path path, std::uint32_t bytes) const {
    LoadOptions options = base(bytes);
    options.packets *= 4;
    options.flows = {{path, bytes, 1.2 * bound_of(path, bytes, parameters_, options.limits).gbytes_per_s}};
    options.regular = true;
    return options;
  }

  void add(const std::string& scenario, double share, const LoadFound& found, const FlowFound& flow) {
    const PathName& name = name_of(flow.flow.path);
    const Bound bound = bound_of(flow.flow.path, flow.flow.bytes, parameters_, {});
    rows_.push_back({{"scenario", scenario},
                     {"case", name.number},
                     {"way", name.name},
                     {"bytes", flow.flow.bytes},
                     {"share", share},
                     {"offered_gbytes_per_s", flow.flow.gbytes_per_s},
                     {"gbytes_per_s", flow.gbytes_per_s},
                     {"bound_gbytes_per_s", bound.gbytes_per_s},
                     {"bound_stage", bound.stage},
                     {"saturated", flow.saturated},
                     {"packets", flow.offered},
                     {"delivered", flow.delivered},
                     {"dropped", flow.dropped},
                     {"unloaded_ns", unloaded(flow.flow.path, flow.flow.bytes)},
                     {"mean_ns", flow.mean_ns},
                     {"p50_ns", flow.p50_ns},
                     {"p99_ns", flow.p99_ns},
                     {"told_ns", flow.told_ns},
                     {"interrupts", found.interrupts},
                     {"wrong", found.wrong}});
  }

  double unloaded(Path path, std::uint32_t bytes) {
    double& known = unloaded_[{path, bytes}];
    if (known == 0) {
      const Measured found = shell::run(path, bytes, parameters_);
      known = found.total + found.descriptor;
    }
    return known;
  }

  /// Runs saturation first, then shares of the rate that it found.
  void alone(Path path, std::uint32_t bytes) {
    LoadOptions options = saturating(path, bytes);
    const LoadFound full = load::run(options);
    const double most = most_[{path, bytes}] = full.flows[0].gbytes_per_s;
    options = base(bytes);
    for (const double share : kShares) {
      options.flows = {{path, bytes, share * most}};
      const LoadFound found = load::run(options);
      add("alone", share, found, found.flows[0]);
    }
    add("alone", 1, full, full.flows[0]);
  }

  /// Each flow has the same share of its rate alone.
  void together(const std::string& scenario, std::uint32_t bytes, const std::vector<Path>& of) {
    for (const double share : kTogetherShares) {
      LoadOptions options = base(bytes);
      options.packets *= static_cast<std::uint32_t>(of.size());
      for (const Path path : of) options.flows.push_back({path, bytes, share * most_.at({path, bytes})});
      const LoadFound found = load::run(options);
      for (const FlowFound& flow : found.flows) add(scenario, share, found, flow);
    }
  }

  Parameters parameters_;
  std::uint32_t packets_;
  std::map<std::pair<Path, std::uint32_t>, double> most_, unloaded_;
  json rows_ = json::array();
};

}  // namespace

json sweep(const Parameters& parameters, std::uint32_t packets) {
  json found{{"limits", json::array()}, {"packets", packets}};
  const Limits values;
  for (const Limit& one : limits())
    found["limits"].push_back({{"name", one.name},
                               {"value", values.*one.member},
                               {"unit", one.unit},
                               {"mark", one.mark},
                               {"source", one.source}});
  Sweep sweep(parameters, packets);
  found["rows"] = sweep.rows();
  found["variants"] = sweep.variants();
  return found;
}

}  // namespace wherry::sim::shell::load
