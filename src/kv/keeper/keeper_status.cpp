// SPDX-License-Identifier: Apache-2.0
// The status for `wherry kv nodes`.
#include <nlohmann/json.hpp>

#include "kv/generated/registers.hpp"
#include "kv/keeper/keeper.hpp"

namespace wherry::kv {
namespace {

double milliseconds(Cycles cycles) { return static_cast<double>(cycles) * kCycleNs / 1e6; }

nlohmann::json list(NodeMask mask) {
  nlohmann::json nodes = nlohmann::json::array();
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (has(mask, node)) nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

std::string Keeper::status(Cycles now) const {
  nlohmann::json nodes = nlohmann::json::array();
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    if (!has(configured_, node)) continue;
    const Node& n = nodes_[node];
    const bool member = has(current_.members, node);
    std::uint32_t leads = 0;
    for (const std::uint8_t leader : current_.leaders) leads += current_.epoch != 0 && leader == node ? 1 : 0;
    const char* state = !n.admitted                          ? "removed"
                        : !n.refusal.empty() && !n.connected ? "refused"
                        : now < n.barred_until               ? "cut off"
                        : has(silent(), node) || n.boot == 0 ? "silent"
                        : n.report.fault                     ? "fault"
                        : member && !same_boot(node)         ? "restarted"
                        : n.stop != 0                        ? "stopping"
                        : has(current_.serving, node)        ? "serving"
                        : member                             ? "catching up"
                                                             : "waiting";
    nodes.push_back({{"node", node},
                     {"name", options_.nodes[node].name},
                     {"state", state},
                     {"connected", n.connected},
                     {"stopped", n.stopped},
                     {"boot", n.boot},
                     {"epoch", n.entered},
                     {"leads", leads},
                     {"lease_ms", n.lease_end > now ? milliseconds(n.lease_end - now) : 0.0},
                     {"last_heard_ms", milliseconds(now - n.last_heard)},
                     {"complete", n.report.complete},
                     {"buckets_left", n.report.buckets_left},
                     {"lanes_left", n.report.lanes_left},
                     {"leftovers", registers::kStateLeftovers.get(n.report.state)},
                     {"in_flight", registers::kStateInFlight.get(n.report.state)},
                     {"frames", n.report.counters.frames},
                     {"dropped", n.report.counters.dropped},
                     {"retries", n.report.counters.retries},
                     {"silent_members", list(n.report.silent)},
                     {"refusal", n.refusal}});
  }
  nlohmann::json failovers = nlohmann::json::array();
  for (const Failover& f : failovers_) {
    nlohmann::json one{{"epoch", f.epoch}, {"removed", list(f.removed)}};
    one["published_ms"] = milliseconds(f.published - f.last_sign);
    one["published_at_ns"] = f.published * kCycleNs;  // of the clock that the keeper was given: CLOCK_BOOTTIME
    if (f.confirmed != 0) one["confirmed_ms"] = milliseconds(f.confirmed - f.last_sign);
    failovers.push_back(std::move(one));
  }
  std::string leaders;
  if (current_.epoch != 0) {
    for (const std::uint8_t leader : current_.leaders) leaders += static_cast<char>('0' + leader % kMaxNodes);
  }
  nlohmann::json json{{"cluster", options_.cluster},
                      {"phase", name_of(phase_)},
                      {"epoch", current_.epoch},
                      {"members", list(current_.members)},
                      {"serving", list(current_.serving)},
                      {"settled", settled_},
                      {"leaders", leaders},
                      {"nodes", nodes},
                      {"failovers", failovers},
                      {"lanes",
                       {{"static", options_.lanes - lanes_.lanes()},
                        {"granted", lanes_.granted()},
                        {"clients", lanes_.count()},
                        {"all", options_.lanes}}}};
  if (phase_ == Phase::asking) json["waits_for"] = missing(now);
  if (phase_ == Phase::lost)
    json["waits_for"] = "all nodes that served have stopped and the data is gone; `start_over` begins an empty store";
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace wherry::kv
