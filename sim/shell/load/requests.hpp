// SPDX-License-Identifier: Apache-2.0
// The hard block under load: QDMA's engines share RQ, a TLP at a time. It is like Requester (requester.hpp), with
// arbitration and back-pressure: engines alternate TLP by TLP. A TLP without room on the link blocks all behind it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/pcie/event_queue.hpp"
#include "sim/pcie/function.hpp"
#include "sim/shell/clock.hpp"
#include "sim/shell/parameters.hpp"

namespace wherry::sim::shell::load {

/// The users of RQ. PG302 does not say how RQ chooses among them; here they take turns.
enum class Source : std::uint8_t { kFetch, kH2cStream, kC2hStream, kH2cMemory, kC2hMemory, kStatus, kCount };

class Requests final : public pcie::Function {
 public:
  using Data = std::function<void(std::uint32_t offset, std::span<const std::byte> data)>;

  explicit Requests(pcie::EventQueue& queue) : queue_(queue) {}
  void start(pcie::Port& port) noexcept { port_ = &port; }

  /// An engine keeps a few TLPs at RQ: the one in transmission and the next ones. Then it waits for on_room.
  static constexpr std::size_t kAhead = 4;
  [[nodiscard]] bool room(Source source) const { return of(source).waiting.size() < kAhead; }
  void on_room_of(Source source, std::function<void()> call) { of(source).on_room.push_back(std::move(call)); }
  /// One TLP. Preconditions: it keeps to MPS and to a page. It is accepted whether or not there is room.
  void write(Source source, std::uint64_t address, std::vector<std::byte> data);
  /// One TLP. Preconditions: it keeps to MRRS and to a page. `data`: ascending.
  void read(Source source, std::uint64_t address, std::uint32_t bytes, Data data);

  void on_write(const pcie::InboundWrite& write) override { static_cast<void>(write); }
  void on_read(const pcie::InboundRead& read) override {
    port_->complete(read, {}, pcie::CompletionStatus::kUnsupportedRequest);
  }
  void on_read_data(pcie::Token token, std::uint32_t offset, std::span<const std::byte> data) override;
  void on_read_done(pcie::Token token, pcie::CompletionStatus status) override;
  void on_room() override;

  std::uint64_t failed = 0;
  std::array<std::uint64_t, static_cast<std::size_t>(Source::kCount)> tlps{};  ///< sent

 private:
  struct Tlp {
    std::uint64_t address;
    std::uint32_t bytes;
    bool write;
    std::vector<std::byte> data;
    pcie::Token token;
  };
  struct Engine {
    std::deque<Tlp> waiting;  ///< the first may be on RQ
    std::vector<std::function<void()>> on_room;
  };
  struct Read {
    Data data;
    std::uint32_t left;
  };
  [[nodiscard]] const Engine& of(Source source) const { return engines_[static_cast<std::size_t>(source)]; }
  [[nodiscard]] Engine& of(Source source) { return engines_[static_cast<std::size_t>(source)]; }
  void add(Source source, Tlp tlp);
  void choose();
  void post();

  pcie::EventQueue& queue_;
  pcie::Port* port_ = nullptr;
  std::array<Engine, static_cast<std::size_t>(Source::kCount)> engines_;
  std::size_t turn_ = 0;  ///< who is on RQ, or was last
  bool busy_ = false, stalled_ = false;
  std::unordered_map<pcie::Token, Read> reads_;
  pcie::Token next_ = 0;
  Time in_free_ = 0;
};

}  // namespace wherry::sim::shell::load
