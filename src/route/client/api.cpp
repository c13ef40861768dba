// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <array>
#include <bit>

#include "base/copy.hpp"
#include "base/try.hpp"
#include "route/client/runtime_core.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

using detail::Agreement;
using detail::RuntimeCore;

namespace {
constexpr std::array<std::string_view, 4> kPlacements{"inline", "shared", "host", "dpu"};
}

std::string_view to_string(Placement placement) noexcept { return kPlacements[static_cast<std::size_t>(placement)]; }

Result<Placement> parse_placement(std::string_view name) {
  for (std::size_t i = 0; i < kPlacements.size(); ++i) {
    if (kPlacements[i] == name) return static_cast<Placement>(i);
  }
  return Status(StatusCode::kInvalidArgument, fmt::format("no placement '{}': want inline, shared, host or dpu", name));
}

Runtime::Runtime(std::unique_ptr<RuntimeCore> core) noexcept : front_(core.get()), core_(std::move(core)) {}
Runtime::Runtime(Runtime&&) noexcept = default;
Runtime& Runtime::operator=(Runtime&&) noexcept = default;
Runtime::~Runtime() = default;

Rank Runtime::rank() const noexcept { return core_->place().rank; }
std::uint32_t Runtime::node() const noexcept { return core_->place().topology.node_of(rank()); }
std::uint32_t Runtime::nodes() const noexcept { return core_->place().topology.nodes(); }
Placement Runtime::placement() const noexcept { return core_->place().placement; }
Statistics Runtime::statistics() const noexcept { return core_->statistics(); }
const Status& Runtime::status() const noexcept { return core_->status(); }
std::string Runtime::describe() const { return core_->describe(); }

void detail::copy_long(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  copy_to_other_core(to, from, bytes);
}

StatusCode Runtime::send_bytes(Rank to, std::uint32_t handler, ByteView message, detail::WhenFull when_full) noexcept {
  return core_->send(to, handler, message, when_full);
}
std::uint32_t Runtime::add(std::unique_ptr<detail::HandlerEntry> entry, const detail::HandlerInfo& info) {
  return core_->add(std::move(entry), info);
}
std::uint64_t Runtime::expect(std::function<bool(ByteView)> then) { return core_->expect(std::move(then)); }
void Runtime::forget(std::uint64_t number) noexcept { core_->forget(number); }
void detail::send_reply(RuntimeCore& core, Rank to, std::uint64_t number, ByteView reply) noexcept {
  core.send_reply(to, number, reply);
}

std::uint64_t Runtime::poll() noexcept { return core_->poll(); }
void Runtime::flush() noexcept { core_->flush(); }
Status Runtime::quiesce(std::chrono::nanoseconds timeout) { return core_->quiesce(timeout); }
StatusCode Runtime::try_quiesce() noexcept { return core_->try_quiesce(); }

namespace {
Status unknown(Runtime::Combine how) {
  return {StatusCode::kInvalidArgument,
          fmt::format("reduce(): combine is {}: want one of Runtime::Combine", static_cast<unsigned>(how))};
}
}  // namespace

Result<std::uint64_t> Runtime::reduce(std::uint64_t value, Combine how) {
  if (how > Combine::kMax) return unknown(how);
  constexpr std::array kHow{Agreement::Combine::kSum, Agreement::Combine::kMin, Agreement::Combine::kMax};
  return core_->reduce(value, kHow[static_cast<std::size_t>(how)]);
}
Result<double> Runtime::reduce(double value, Combine how) {
  if (how > Combine::kMax) return unknown(how);
  constexpr std::array kHow{Agreement::Combine::kSumDouble, Agreement::Combine::kMinDouble,
                            Agreement::Combine::kMaxDouble};
  WHERRY_ASSIGN(auto bits, core_->reduce(std::bit_cast<std::uint64_t>(value), kHow[static_cast<std::size_t>(how)]));
  return std::bit_cast<double>(bits);
}

std::span<std::byte> Runtime::try_buffer(Rank towards, std::size_t bytes) noexcept {
  return core_->try_buffer(towards, bytes);
}
void Runtime::post_buffer(Rank towards, std::size_t bytes, std::uint64_t messages) noexcept {
  core_->post_buffer(towards, bytes, messages);
}
std::size_t Runtime::max_buffer() const noexcept { return core_->max_buffer(); }
std::uint64_t Runtime::poll_buffers(const std::function<void(ByteView)>& take) { return core_->poll_buffers(take); }

}  // namespace wherry::route
