// SPDX-License-Identifier: Apache-2.0
#include "sim/designs/experiments.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/designs/measure.hpp"
#include "sim/designs/neighbours.hpp"
#include "sim/memory/traffic.hpp"

namespace wherry::sim::designs {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kWholeRun = 8 * kMiB;
constexpr Flow kFlows[] = {Flow::kToCard, Flow::kToHost};

std::string_view word(Flow flow) { return flow == Flow::kToCard ? "h2c" : "c2h"; }
std::string_view word(Notice notice) { return notice == Notice::kInterrupt ? "interrupt" : "polled"; }
std::string_view word(Controller controller) { return controller == Controller::kCard ? "card" : "litedram"; }

/// The designs as in the paper, whose MicroBlaze was idle in the tests (section 6.3).
PointOptions point_of(Design design, Flow flow, std::uint32_t channels, std::uint64_t bytes) {
  PointOptions options{.flow = flow, .channels = channels, .bytes = bytes};
  options.card.design = design;
  if (design == Design::kLinux) options.neighbour = linux_traffic();
  return options;
}

Json row_of(const PointOptions& options, const Point& point) {
  return {{"design", name_of(options.card.design)},
          {"flow", word(options.flow)},
          {"channels", options.channels},
          {"bytes", options.bytes},
          {"notice", word(options.notice)},
          {"preset", options.preset.name},
          {"controller", options.card.design == Design::kBram ? "none" : word(options.card.controller)},
          {"gbytes_per_s", point.gbytes},
          {"transfer_ns", point.transfer_ns},
          {"error", point.error}};
}

/// The sizes of one curve. A transfer beyond one full run of the driver consists of several runs.
void curve(Json& rows, PointOptions options, std::uint64_t least, std::uint64_t most, std::uint64_t factor) {
  Point run;
  std::uint64_t simulated = 0;
  for (std::uint64_t bytes = least; bytes <= most; bytes *= factor) {
    options.bytes = bytes;
    if (std::min(bytes, options.preset.run_bytes) != simulated) run = measure(options);
    simulated = std::min(bytes, options.preset.run_bytes);
    rows.push_back(row_of(options, run));
  }
}

}  // namespace

Json figures(bool quick, const Say& say) {
  Json rows = Json::array();
  const std::uint64_t factor = quick ? 16 : 2;
  for (const Design design : kDesigns)
    for (const Flow flow : kFlows) {
      say(fmt::format("figures: {} {}", name_of(design), word(flow)));
      const std::uint64_t most = design == Design::kBram ? kMiB : 64 * kMiB;
      for (std::uint32_t channels = 1; channels <= kMostChannels; ++channels) {
        if (quick && channels != 1 && channels != kMostChannels) continue;
        PointOptions options = point_of(design, flow, channels, 64);
        for (const Notice notice : {Notice::kInterrupt, Notice::kPolled}) {
          if (quick && notice == Notice::kPolled) continue;
          options.notice = notice;
          curve(rows, options, 64, most, factor);
        }
        if (channels != 1 && channels != kMostChannels) continue;
        options.preset = kWherry;
        options.notice = Notice::kPolled;
        curve(rows, options, 64, std::min(most, kWholeRun), factor);
      }
    }
  return rows;
}

/// One stream, and four that alternate between rows of one bank: at the memory's port, and through the engine, with an
/// unlimited link and with channels that begin in step.
Json turns(const Say& say) {
  Json rows = Json::array();
  constexpr double kWideLink = 60;  // GB/s
  for (const Controller controller : {Controller::kLitedram, Controller::kCard})
    for (const Flow flow : kFlows) {
      say(fmt::format("turns: controller {}, {}", word(controller), word(flow)));
      for (const std::uint32_t turn : {512U, 1024U, 4096U})
        for (const std::uint32_t streams : {1U, kMostChannels}) {
          const bool litedram = controller == Controller::kLitedram;
          memory::Ddr4 ddr4(litedram ? memory::kLitedramController : memory::kCardController,
                            litedram ? memory::kLitedramTiming : memory::kDdr4_2400);
          memory::Content content;
          memory::AxiMemory bus(ddr4, content, 2);
          const memory::Load load{.reads = flow == Flow::kToHost,
                                  .writes = flow == Flow::kToCard,
                                  .beats = turn / static_cast<std::uint32_t>(memory::kBeatBytes),
                                  .streams = streams};
          const memory::Rates rates = memory::measure(bus, {"", load, {}}, ddr4.cycle_ps());
          PointOptions options = point_of(Design::kDdr4, flow, streams, kWholeRun);
          options.card.controller = controller;
          options.placement = Placement::kOneBank;
          options.in_step = true;
          options.preset = kWherry;
          options.preset.piece = options.preset.to_card_turn = options.preset.to_host_turn = turn;
          options.preset.link.raw = kWideLink;
          options.calls = 1;
          const Point point = measure(options);
          rows.push_back({{"controller", word(controller)},
                          {"flow", word(flow)},
                          {"turn", turn},
                          {"streams", streams},
                          {"memory_gbytes_per_s", rates.read_gbs + rates.write_gbs},
                          {"engine_gbytes_per_s", point.gbytes},
                          {"error", point.error}});
        }
    }
  return rows;
}

Json interconnect(const Say& say) {
  Json rows = Json::array();
  say("interconnect: register slices between engine and memory");
  for (const Flow flow : kFlows)
    for (std::uint32_t slices = 0; slices <= 60; slices += 5) {
      PointOptions options = point_of(Design::kSoftcore, flow, 1, kWholeRun);
      options.card.slices = slices;
      const Point point = measure(options);
      rows.push_back({{"flow", word(flow)},
                      {"slices", slices},
                      {"cycles", 2 * (slices + 1)},
                      {"gbytes_per_s", point.gbytes},
                      {"error", point.error}});
    }
  return rows;
}

/// Measures all windows of the recording for the bar, and only the figures' window elsewhere.
Json linux_beside(const Say& say) {
  Json rows = Json::array();
  for (const Controller controller : {Controller::kCard, Controller::kLitedram}) {
    say(fmt::format("linux: controller {}", word(controller)));
    for (const std::uint32_t mhz : {0U, 100U, 200U})
      for (const Flow flow : kFlows) {
        const bool all = mhz == 100 && flow == Flow::kToHost;
        for (std::uint32_t window = all ? 0 : kFigureWindow; window < kLinuxWindows; ++window)
          for (std::uint32_t channels = 1; channels <= kMostChannels; ++channels) {
            PointOptions options = point_of(Design::kLinux, flow, channels, kWholeRun);
            options.card.controller = controller;
            options.neighbour = mhz == 0 ? MakeNeighbour{} : linux_traffic(mhz * 1'000'000, window);
            const Point point = measure(options);
            rows.push_back({{"controller", word(controller)},
                            {"core_mhz", mhz},
                            {"window", mhz == 0 ? Json() : Json(window)},
                            {"flow", word(flow)},
                            {"channels", channels},
                            {"gbytes_per_s", point.gbytes},
                            {"error", point.error}});
          }
      }
  }
  return rows;
}

Json firmwares(const Say& say) {
  Json rows = Json::array();
  say("firmwares of the soft core");
  std::vector<std::pair<std::string, MakeNeighbour>> all{{"idle", {}}};
  if (pico_is_here()) {
    all.emplace_back("nop", nops());
    all.emplace_back("memory_test", memory_test());
  }
  for (const auto& [name, neighbour] : all)
    for (const Flow flow : kFlows)
      for (const std::uint32_t channels : {1U, kMostChannels}) {
        PointOptions options = point_of(Design::kSoftcore, flow, channels, kWholeRun);
        options.neighbour = neighbour;
        const Point point = measure(options);
        rows.push_back({{"firmware", name},
                        {"flow", word(flow)},
                        {"channels", channels},
                        {"gbytes_per_s", point.gbytes},
                        {"error", point.error}});
      }
  return rows;
}

}  // namespace wherry::sim::designs
