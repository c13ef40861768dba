// SPDX-License-Identifier: Apache-2.0
// How a rank begins and ends.
#include "route/client/runtime_core.hpp"

#include <fmt/core.h>

#include "base/error_line.hpp"
#include "base/guarded.hpp"
#include "route/hop.hpp"

namespace wherry::route::detail {

RuntimeCore::RuntimeCore(const Options& options, std::unique_ptr<Wiring> wiring, std::unique_ptr<StatisticsFile> file)
    : options_(options),
      wiring_(std::move(wiring)),
      exit_watch_(wiring_->presence(), [this] { leave_job(); }),
      file_(std::move(file)),
      router_(wiring_->router()),
      backlog_(router_, wiring_->place().rank, options.backlog_bytes, kFragmentHandler),
      agreement_(wiring_->place().rank, wiring_->place().topology.tree_links(wiring_->place().rank), kReportHandler,
                 kOutcomeHandler,
                 [this](Rank to, std::uint32_t handler, ByteView message) { send_notice(to, handler, message); }) {
  lane_of = router_.table();
  ranks = router_.ranks();
  for (const Rank child : wiring_->place().topology.tree_links(wiring_->place().rank).children)
    lanes_of_children_.push_back(router_.index_of(router_.lane_of(child)));
  if (file_ != nullptr) file_->begin();
  start_watching();
}

void RuntimeCore::in_child() noexcept {
  inherited_ = true;
  leaving_ = true;  // a handler may have forked: the messages behind its own are the parent's
  std::swap(failure_, in_child_);
  router_.abandon();  // no lane has room: inlined sends go through send(), which says why
}

RuntimeCore::~RuntimeCore() {
  stop_watching();
  if (inherited_) return;
  leave_job();
  if (file_ == nullptr) return;
  if (const Status s = file_->write(place(), statistics()); !s)
    error_line(fmt::format("rank {}: no statistics: {}", place().rank, s.message()));
}

void RuntimeCore::warn_of_losses() noexcept {
  (void)attempt([&] {
    const std::string who = wiring_->unsettled();
    if (who.empty()) return;
    error_line(fmt::format("rank {} leaves the job and drops messages: {} did not take them within {} s", place().rank,
                           who, Hop::kPatience.count()));
  });
}

void RuntimeCore::leave_job() noexcept {
  if (router_.abandoned()) return;
  leaving_ = true;  // nobody handles what still comes
  const Departure departure{place().rank, agreement_.round()};
  if (failure_) tell(kLeftHandler, std::as_bytes(std::span(&departure, 1)));
  flush();
  constexpr std::chrono::seconds kBriefly{1};
  const Deadline patience(kBriefly);  // for what others may have no room for
  // Messages of a failed job need not arrive, so do not wait for them.
  while ((!notices_.empty() && !patience.passed()) || !wiring_->settled(failure_ ? Hop::kPatience : kBriefly)) {
    poll();
    flush();
  }
  if (failure_) warn_of_losses();
  if (failure_) conclude();
  wiring_->leave();
  router_.abandon();
  if (failure_) std::swap(failure_, over_);
}

Statistics RuntimeCore::statistics() const noexcept {
  const RouterCounts& counts = router_.counts;
  const auto why = [&](Flush flush) { return counts.flushes[static_cast<std::size_t>(flush)]; };
  return {.sent = sent,
          .handled = handled_,
          .forwarded_bytes = counts.forwarded_bytes,
          .bytes_out = counts.bytes_out,
          .bytes_in = counts.bytes_in,
          .transfers = counts.transfers,
          .flush_full = why(Flush::kFull),
          .flush_idle = why(Flush::kIdle),
          .flush_timeout = why(Flush::kTimeout),
          .flush_explicit = why(Flush::kExplicit),
          .would_block = would_block_,
          .backlog_bytes = backlog_.bytes(),
          .backlog_high = backlog_.high_water(),
          .blocked_ns = blocked_ns_};
}

std::string RuntimeCore::describe() const {
  const Topology& topology = place().topology;
  const RingShape shape = router_.lanes().front().ring.shape();
  const std::string& why = place().buffers_why;
  return fmt::format(
      "rank {} of {} on node {} of {}, placement {}, {} buffers of {} bytes{} to each of {} next hops over {}",
      place().rank, ranks, topology.node_of(place().rank), topology.nodes(), to_string(place().placement),
      shape.buffers, shape.buffer_bytes, why.empty() ? "" : fmt::format(" ({})", why), router_.lanes().size(),
      wiring_->transport());
}

std::uint32_t RuntimeCore::add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info) {
  const auto id = handlers_.add(std::move(entry), std::move(info));
  if (id) return *id;
  fail(id.status());
  return 0;
}

}  // namespace wherry::route::detail
