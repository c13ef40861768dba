// SPDX-License-Identifier: Apache-2.0
// Handles the keeper's messages and the leases; driver_core.cpp handles the core.
#include "kv/node/driver/driver.hpp"

#include <algorithm>
#include <utility>

namespace wherry::kv {

Driver::Driver(DriverOptions options, RegisterIo& core, DriverOutput& output, Cycles now)
    : options_(std::move(options)), core_(core), output_(output) {
  options_.sources = merged(std::move(options_.sources));
  // A core cannot hold a mask of 0, so two halves stand for all addresses.
  if (const std::vector<Subnet> all{Subnet{}}; options_.sources == all)
    options_.sources = {{.ip = 0, .mask = 1U << 31}, {.ip = 1U << 31, .mask = 1U << 31}};
  begin(0, now);
}

void Driver::enter_static(const Configuration& configuration, Cycles now) {
  static_ = configuration;
  on_time(now);
}

void Driver::connected(Cycles now) {
  connected_ = true;
  heard_ = now;
  unanswered_ = 0;
  stopped_ = false;  // by the keeper before; this one says so again
  asked_ = 0;
  next_ask_ = 0;
  refusal_.clear();
  hello();
}

void Driver::disconnected() {
  connected_ = false;
  asked_ = 0;
}

void Driver::hello() {
  if (!connected_ || !unfit_.empty()) return;
  output_.send(Hello{.cluster = options_.cluster,
                     .node = options_.node,
                     .boot = boot_,
                     .ended_boot = ended_,
                     .ready = ready_ && !fault_,
                     .complete = complete_,
                     .lanes = options_.lanes,
                     .entered = entered_,
                     .bucket_bits = options_.bucket_bits,
                     .nodes = options_.nodes,
                     .accept = options_.accept});
}

void Driver::report(std::uint64_t ping) {
  if (!connected_ || !unfit_.empty()) return;
  // Each counter costs a read of a register, so they are read only for every tenth report.
  if (reports_++ % 10 == 0 && !fault_) {
    counters_.frames = core_.read(registers::kFramesKvOffset);
    counters_.dropped = read_counter(registers::kDroppedChecksumOffset) +
                        read_counter(registers::kDroppedLengthOffset) + read_counter(registers::kDroppedEpochOffset) +
                        read_counter(registers::kDroppedDuplicateOffset) + read_counter(registers::kDroppedBusyOffset) +
                        read_counter(registers::kDroppedSourceOffset);
    counters_.retries = core_.read(registers::kRetriesOffset);
  }
  Report r;
  r.ping = ping;
  r.boot = boot_;
  r.epoch = epoch();
  r.ready = ready_ && !fault_;
  r.fault = fault_;
  r.complete = complete_;
  r.state = state_;
  if (entered_ && !complete_) {
    const std::uint64_t all = std::uint64_t{1} << options_.bucket_bits;
    const std::uint32_t chunk = fetching_ ? core_.read(registers::kSyncCountOffset) : 0;
    r.buckets_left = all - std::min(all, next_bucket_) + chunk;
    r.lanes_left = lanes_asked_ ? core_.read(registers::kSyncLanesOffset) : options_.lanes;
  }
  if (options_.silent_members && entered_ && complete_) r.silent = options_.silent_members(options_.silence);
  if (!options_.silent_members) r.silent = silent_;
  r.counters = counters_;
  output_.send(r);
}

void Driver::on_message(const FromKeeper& message, Cycles now) {
  if (!connected_) return;
  heard_ = now;
  std::visit([&](const auto& m) { on(m, now); }, message);
}

void Driver::on(const Ping& ping, Cycles now) {
  // First check the core: an answer from the software alone would hide that the core is gone.
  if (look(now)) report(ping.ping);
}

void Driver::on(const Configure& configure, Cycles now) {
  if (!static_) obey(configure.configuration, now);
}

void Driver::obey(const Configuration& c, Cycles now) {
  if (c.epoch < epoch()) return;
  if (has(c.members, options_.node) && c.boots[options_.node] == boot_) {
    if (!ready_ || fault_) return;
    if (c.epoch > epoch()) {
      if (entering()) {  // it would not hear: the next look tries again
        if (!has(c.serving, options_.node)) write_lease(0);
        next_ = c;
        entering_ = true;
        asked_ = 0;  // it was asked for in another epoch
        next_look_ = std::min(next_look_, now + options_.busy_interval);
        return;
      }
      enter(c, now);
    }
    tell_entered();
    return;
  }
  // The node is left out, even if it does not know it, and its data become old. The node returns empty, with a new boot
  // number.
  const bool left_out = entered_ ? c.epoch > epoch() : c.boots[options_.node] == boot_;
  if (left_out) begin(boot_, now);
}

void Driver::on(const Stop& stop, Cycles) {
  stopped_ = true;
  asked_ = 0;  // an answer on its way must not undo this
  write_lease(0);
  // A core that does not respond may still have its lease. Then the keeper waits for the lease's end.
  if (core_.read(registers::kIdOffset) == registers::kIdReset) output_.send(Stopped{boot_, stop.id});
}

void Driver::on(const Resume&, Cycles now) {
  stopped_ = false;
  next_ask_ = now;
}

void Driver::on(const Settled& settled, Cycles now) {
  if (!entered_ || settled.epoch != epoch()) return;
  settled_ = true;
  if (!complete_) next_look_ = now;
}

void Driver::on(const Answer& answer, Cycles) { refusal_ = answer.text; }

/// The core's clock is read before the keeper is asked, so that the lease ends here first, whatever the delay. A sixth
/// of the lease is left for clocks of different speeds: clock daemons may slew the two clocks by up to 8.3 % each
/// (chrony's default), in opposite directions.
void Driver::ask_lease(Cycles now) {
  asked_cycles_ = cycles();
  asked_at_ = now;
  asked_ = ++asks_;
  if (unanswered_ == 0) unanswered_ = now;
  output_.send(AskLease{asked_, boot_, epoch()});
}

void Driver::on(const Grant& grant, Cycles now) {
  unanswered_ = 0;
  if (asked_ == 0 || grant.id != asked_) return;
  asked_ = 0;
  if (grant.lease == 0 || stopped_ || !serves()) {
    next_ask_ = now + options_.busy_interval;
    return;
  }
  lease_ = grant.lease;
  const Cycles end = asked_cycles_ + grant.lease - grant.lease / kLeaseMargin - 1;
  if (end > lease_end_) write_lease(end);
  next_ask_ = asked_at_ + grant.lease / 3;
}

void Driver::on_time(Cycles now) {
  if (now >= next_look_) look(now);
  if (static_ && ready_ && !entered_ && !fault_) enter(*static_, now);
  if (!connected_ || !serves() || stopped_ || static_) return;
  // An answer that takes longer than a lease was lost with its connection, or is useless.
  const bool overdue = asked_ != 0 && now > asked_at_ + std::max(lease_, options_.idle_interval);
  if ((asked_ == 0 && now >= next_ask_) || overdue) ask_lease(now);
}

Cycles Driver::next_time() const noexcept {
  Cycles next = next_look_;
  if (connected_ && serves() && !stopped_ && !static_)
    next = std::min(next, asked_ == 0 ? next_ask_ : asked_at_ + std::max(lease_, options_.idle_interval) + 1);
  return next;
}

}  // namespace wherry::kv
