// SPDX-License-Identifier: Apache-2.0
// Inside sim/pcie: a function's requester and completer.
#pragma once

#include <deque>
#include <vector>

#include "sim/pcie/function.hpp"
#include "sim/pcie/node.hpp"
#include "sim/pcie/split.hpp"

namespace wherry::sim::pcie {

/// Where a function's packets go.
class Outlet {
 public:
  /// `packet->queued_by` must be set. FunctionPort::left() reports when its first bit is sent, or when it is lost.
  virtual void issue(Packet* packet) = 0;
  /// The value of FunctionPort::ready() has changed.
  virtual void ready_changed() = 0;

 protected:
  ~Outlet() = default;
};

class FunctionPort final : public Port, public QueueAccount, EventHandler {
 public:
  FunctionPort(Context& context, Outlet& outlet, Function& function, const FunctionOptions& options, std::uint32_t rcb);
  ~FunctionPort() = default;

  void post_write(std::uint64_t address, std::span<const std::byte> data, Attributes attributes) override;
  [[nodiscard]] bool try_write(std::uint64_t address, std::span<const std::byte> data, Attributes attributes) override;
  [[nodiscard]] bool try_read(const ReadRequest& request) override;
  void post_read(const ReadRequest& request) override;
  void complete(const InboundRead& read, std::span<const std::byte> data, CompletionStatus status) override;
  void set_ready(bool writes, bool reads) override;
  [[nodiscard]] FunctionId id() const noexcept override { return id_; }
  [[nodiscard]] std::uint64_t bar_address(std::uint32_t bar) const noexcept override {
    return bar < kBars ? bars_[bar] : 0;
  }
  [[nodiscard]] std::uint32_t mps() const noexcept override { return context_.options.mps; }
  [[nodiscard]] std::uint32_t mrrs() const noexcept override { return mrrs_; }
  [[nodiscard]] std::uint32_t reads_pending() const noexcept override { return pending_; }
  [[nodiscard]] std::uint64_t bytes_queued() const noexcept override { return queued_; }
  [[nodiscard]] bool bus_master() const noexcept override { return bus_master_; }
  [[nodiscard]] const PortCounters& counters() const noexcept override { return counters_; }
  void set_bus_master(bool on) override;
  void set_memory_space(bool on) override { memory_space_ = on; }
  void set_mrrs(std::uint32_t bytes) override;
  void set_completion_timeout(Time timeout) override { timeout_ = timeout; }
  void reset() override;

  // For the fabric.
  void place(FunctionId id, const std::array<std::uint64_t, kBars>& bars) noexcept {
    id_ = id;
    bars_ = bars;
    memory_space_ = true;
  }
  [[nodiscard]] const FunctionOptions& options() const noexcept { return options_; }
  [[nodiscard]] bool memory_space() const noexcept { return memory_space_; }
  [[nodiscard]] bool ready(FlowClass flow) const noexcept {
    return flow == FlowClass::kPosted ? ready_writes_ : flow == FlowClass::kNonPosted ? ready_reads_ : true;
  }
  void removed();
  void inserted();
  void hot_reset();
  void left(const Packet& packet) override;
  /// Take requests that a BAR of this function claims, and completions for it. The packet remains the caller's.
  void receive_write(const Packet& packet, std::uint32_t bar);
  void receive_read(const Packet& packet, std::uint32_t bar);
  void receive_completion(const Packet& packet);
  void count_unsupported() noexcept { ++counters_.unsupported; }

 private:
  enum class TagState : std::uint8_t { kFree, kWaiting, kQuarantined };
  struct Tag {
    TagState state = TagState::kFree;
    std::uint16_t previous = 0, next = 0;  ///< in the order of deadlines
    std::uint32_t read = 0;
    std::uint32_t offset = 0;  ///< of the request in the read
    std::uint32_t bytes = 0, remaining = 0;
    std::uint64_t address = 0;
    Time deadline = 0;
  };
  struct Read {
    ReadRequest request;
    std::uint32_t issued = 0;  ///< bytes
    std::uint32_t open = 0;    ///< requests
    bool complete_issue = false;
    CompletionStatus status = CompletionStatus::kSuccess;
  };
  /// Events deliver these in this order.
  struct Notice {
    bool reset;
    ResetKind kind;
    Token token;
  };
  static constexpr std::uint16_t kNoTag = 0xffff;
  /// Arguments of its events.
  static constexpr std::uint64_t kRoom = 1, kNotices = 2, kDeadline = 3;

  void on_event(std::uint64_t argument) override;
  void issue(Packet* packet);
  void pump_reads();
  void issue_part(std::uint32_t index);
  void finish_tag(std::uint16_t tag, CompletionStatus status);
  void free_tag(std::uint16_t tag);
  void finish_read_if_over(std::uint32_t index);
  void abandon_waiting();
  void abandon_all(ResetKind kind);
  void want_room() noexcept { wants_room_ = true; }
  void offer_room();
  void check_deadlines();
  [[nodiscard]] std::uint32_t take_read(const ReadRequest& request);

  Context& context_;
  Outlet& outlet_;
  Function& function_;
  FunctionOptions options_;
  CompletionSplitter splitter_;
  SplitMix64 random_;

  FunctionId id_ = 0;
  std::array<std::uint64_t, kBars> bars_{};
  std::uint32_t mrrs_;
  Time timeout_;
  bool bus_master_ = false;
  bool memory_space_ = false;
  bool present_ = true;
  bool ready_writes_ = true, ready_reads_ = true;
  std::uint32_t resets_ = 0;

  std::uint64_t queued_ = 0;
  bool wants_room_ = false;
  bool room_scheduled_ = false;
  bool notices_scheduled_ = false;
  std::vector<Notice> notices_;

  std::vector<Tag> tags_;
  std::deque<std::uint16_t> free_tags_;  ///< the one that has been free for the longest is used next
  std::uint16_t first_deadline_ = kNoTag, last_deadline_ = kNoTag;
  std::uint32_t pending_ = 0;
  std::uint64_t awaited_ = 0;  ///< bytes
  std::vector<Read> reads_;
  std::vector<std::uint32_t> free_reads_;
  std::deque<std::uint32_t> waiting_;  ///< reads with parts that have no tag yet
  Timer deadline_timer_;
  PortCounters counters_;
};

}  // namespace wherry::sim::pcie
