// SPDX-License-Identifier: Apache-2.0
// The data thread's rounds: work, rest, metrics, and the end.
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>

#include "agent/impl.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "base/version.hpp"

namespace wherry {
namespace {

constexpr std::uint64_t kControlEveryNs = 50'000;    // looks at the control connections while busy
constexpr std::uint64_t kMovingSpinNs = 50'000'000;  // without progress, while transfers are under way: then it may nap

}  // namespace

bool Agent::Impl::step() {
  bool worked = false;
  for (auto& [transport, plane] : planes) worked |= plane.worker->progress() != 0;
  worked |= part_of_round("mailboxes", [&] { return mailboxes(); });
  for (const auto& client : clients) worked |= client->puts_pending() && client->push_puts();
  for (const auto& service : services) {
    const Result<bool> polled = guarded([&] { return Result<bool>(service->poll()); });
    worked |= !polled || *polled;
    if (!polled) note_failed(service->name(), polled.status());
  }
  return worked;
}

void Agent::Impl::note_failed(std::string_view part, const Status& why) noexcept {
  if (std::uint64_t more = 0; failed_parts.admit(now_ns(), more))
    attempt([&] { spdlog::error("{}: {} ({} times more before)", part, why.message(), more); });
}

/// One round of all work of the data thread.
bool Agent::Impl::turn(bool may_idle) {
  bool worked = step();
  const std::uint64_t now = now_ns();
  if (now - last_control > kControlEveryNs) {
    last_control = now;
    worked |= part_of_round("control connections", [&] { return control(); });
    worked |= part_of_round("handshakes", [&] { return handshakes(); });
    if (http && http->wanted()) part_of_round("metrics", [&] { return publish_metrics(), false; });
  }
  if (worked) {
    last_work = now;
  } else if (may_idle) {
    idle(now - last_work);
  }
  return worked;
}

/// Whether an operation is in flight whose completion only a progress call can notice.
bool Agent::Impl::moving() const {
  for (const auto& service : services) {
    if (service->moving()) return true;
  }
  for (const auto& client : clients) {
    if (client->puts_pending() || client->probe_pending()) return true;
  }
  return false;
}

void Agent::Impl::idle(std::uint64_t since_work_ns) {
  if (since_work_ns < config.spin_us * 1000 || (since_work_ns < kMovingSpinNs && moving())) {
    cpu_relax();
  } else if (config.nap_us == 0) {
    sched_yield();
  } else {
    // The nap waits on the control connections, so a request ends it. A data message does not end it: it waits until
    // the nap is over.
    timespec nap{static_cast<time_t>(config.nap_us / 1'000'000), static_cast<long>(config.nap_us % 1'000'000) * 1000};
    epoll_event event{};
    epoll_pwait2(epoll.get(), &event, 1, &nap, nullptr);
  }
}

/// Publishes the numbers that only this thread may read.
void Agent::Impl::publish_metrics() {
  session::MetricsWriter out;
  out.gauge("wherry_agent_sessions", "Clients connected.", static_cast<double>(by_session.size()));
  out.counter("wherry_agent_sessions_total", "Sessions that were opened.", sessions_total);
  out.counter("wherry_agent_refused_total", "Connections that were turned away.", refused_total);
  out.gauge("wherry_agent_budget_bytes", "Memory for frames.", static_cast<double>(host.arena->capacity()));
  out.gauge("wherry_agent_used_bytes", "Memory that frames hold now.", static_cast<double>(host.arena->in_use()));
  out.gauge("wherry_agent_touched_bytes", "Part of the budget that was ever used.",
            static_cast<double>(host.arena->touched()));
  for (const auto& client : clients) {
    if (client->state != AgentClient::State::kReady) continue;
    out.gauge("wherry_session_info", "A client: who it is and how it is reached.", 1,
              fmt::format("{},{},{},{},{},{}", client->label(),
                          session::MetricsWriter::label("pid", std::to_string(client->pid())),
                          session::MetricsWriter::label("transports", client->verdict.transports),
                          session::MetricsWriter::label("heap", to_string(client->verdict.heap)),
                          session::MetricsWriter::label("allocated", to_string(client->verdict.allocated)),
                          session::MetricsWriter::label("mapped", client->verdict.mapped ? "true" : "false")));
  }
  for (const auto& client : clients) {
    if (client->state != AgentClient::State::kReady) continue;
    out.counter("wherry_session_bytes_total", "Bytes moved from a client's memory.", client->moved(), client->label());
  }
  metrics_of_services(out);
  http->publish(out.text());
}

void Agent::Impl::metrics_of_services(session::MetricsWriter& out) {
  for (std::size_t i = 0; i < services.size(); ++i) {
    const Status health = services[i]->health();
    out.gauge("wherry_service_healthy", "1: the service can do its work; 0: it cannot, and the log says why.",
              health ? 1 : 0, session::MetricsWriter::label("service", services[i]->name()));
    if (!health && !unwell[i]) spdlog::warn("{}: {}", services[i]->name(), health.message());
    unwell[i] = !health;
  }
  for (const auto& service : services) service->metrics(out);
}

/// Waits until accepted work is done, on this and other threads. Meanwhile clients may close streams. A new offload
/// gets an error that the agent is ending.
void Agent::Impl::drain() {
  for (int i = 0; i < 64; ++i) step();  // what was posted before the signal may still lie in UCX's queues
  draining = true;
  for (const auto& service : services) service->start_draining();
  const Deadline deadline{std::chrono::milliseconds(config.drain_ms)};
  const auto drained = [&] {
    for (const auto& service : services) {
      if (!service->drained()) return false;
    }
    return std::none_of(clients.begin(), clients.end(), [](const auto& client) { return client->puts_pending(); });
  };
  while (!drained() && !deadline.passed()) turn(true);
  if (!drained()) spdlog::warn("not everything that was accepted was done within agent.drain_ms = {}", config.drain_ms);
  const auto flushed = [&](std::chrono::milliseconds patience) -> Status {
    for (const auto& service : services) WHERRY_TRY(service->flush(patience));
    return ok_status();
  };
  Status rest = flushed(std::chrono::milliseconds(0));
  while (!rest && !deadline.passed()) {
    turn(false);
    rest = flushed(std::chrono::milliseconds(1));
  }
  if (!rest) spdlog::warn("{}", rest.message());
  const Status bye(StatusCode::kUnavailable, "the agent was shut down");
  while (!clients.empty()) {
    tell(*clients.front(), bye);
    end(*clients.front(), bye);
  }
}

Status Agent::run(const std::atomic<bool>& stop, bool embedded) {
  Impl& a = *impl_;
  a.announced.pid = getpid();
  WHERRY_TRY(a.claim.publish(a.announced));
  spdlog::info("wherry {} agent on {}, budget {} MiB, UCX {}, session file {}", kVersion,
               address().empty() ? control_socket() : address(), a.host.arena->capacity() >> 20, fabric::ucx_version(),
               a.config.session_file);

  a.last_work = now_ns();
  std::uint64_t last_look = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    a.turn(true);
    if (!embedded || now_ns() - last_look < kControlEveryNs) continue;
    last_look = now_ns();
    pollfd owner{STDIN_FILENO, POLLIN, 0};
    if (poll(&owner, 1, 0) > 0 && (owner.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) break;
  }
  spdlog::info("draining");
  a.drain();
  a.claim.withdraw();
  return ok_status();
}

}  // namespace wherry
