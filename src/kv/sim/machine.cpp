// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/machine.hpp"

#include <algorithm>
#include <utility>

namespace wherry::kv::sim {

Machine::Machine(Network& network, Port port, const MachineOptions& options, ToKeeperFunction to_keeper)
    : network_(network),
      port_(port),
      random_(options.seed),
      options_(options),
      to_keeper_(std::move(to_keeper)),
      clock_{.rate = 1 + options.drift * 1e-6, .origin = random_.next() >> 32} {}

void Machine::control(const FromControl& event) {
  inbox_.push_back(event);
  network_.wake_at(network_.now(), port_, kControl);
}

void Machine::wake(Cycles, std::uint64_t tag) {
  if (tag != kControl && !alarm_.rings(tag)) return;
  catch_up();
  if (tag == kControl) {
    const FromControl event = std::move(inbox_.front());
    inbox_.pop_front();
    if (std::holds_alternative<Connected>(event)) driver_->connected(local());
    if (std::holds_alternative<Disconnected>(event)) driver_->disconnected();
    if (const auto* message = std::get_if<FromKeeper>(&event)) driver_->on_message(*message, local());
  }
  work();
}

void Machine::work() {
  if (driver_->next_time() <= local()) driver_->on_time(local());
  const Cycles next = std::min(tick(), driver_->next_time());
  if (next != ~Cycles{0}) alarm_.ask(network_, port_, clock_.truth(std::max(next, local() + 1)));
}

}  // namespace wherry::kv::sim
