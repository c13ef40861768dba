// SPDX-License-Identifier: Apache-2.0
// One conveyor of one rank, on the Runtime of its process.
#pragma once

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/aligned.hpp"
#include "base/fork.hpp"
#include "route/client/agreement.hpp"
#include "route/client/runtime_core.hpp"
#include "route/convey/arrivals.hpp"
#include "wherry/convey.h"

namespace wherry::route::convey {

/// The return values of failed calls.
inline constexpr int kState = -1, kUsage = -2, kNull = -3, kRange = -4, kTeam = -5, kComms = -6, kAlloc = -7,
                     kRigid = -8, kMisfit = -9, kOverflow = -10, kZero = -11, kTooBig = -12, kNoFunction = -13;

struct Traits {
  std::size_t largest = 0;  ///< item, in bytes
  bool elastic = false;
  bool quiet = false;
};

/// In a child of fork() all calls fail, except those that only return information.
class Conveyor : private ForkWatch {
 public:
  /// `data` and `credit`: the handlers of its packets and of its credits. `epoch` counts the sessions.
  Conveyor(detail::RuntimeCore& core, detail::Agreement& agreement, std::uint32_t data, std::uint32_t credit,
           Traits traits, std::uint32_t& epoch);
  ~Conveyor() override { stop_watching(); }

  [[nodiscard]] const Traits& traits() const noexcept { return traits_; }
  [[nodiscard]] std::size_t item_bytes() const noexcept { return state_ == State::kDormant ? 0 : item_bytes_; }
  int set_codec(const convey_codec_t* codec) const noexcept;
  /// Ok, or why the job has failed.
  [[nodiscard]] const Status& job() const noexcept { return core_.status(); }
  /// Whether other ranks may be waiting for this rank.
  [[nodiscard]] bool under_way() const noexcept {
    return state_ == State::kWorking || state_ == State::kEndgame || state_ == State::kCleanup;
  }
  [[nodiscard]] std::int64_t statistic(int which) const noexcept;
  /// Whether to report `error`: only the first time, and not if the conveyor is quiet.
  bool first_time(int error) noexcept;

  int begin(std::size_t item_bytes, std::size_t align);
  int push(const void* item, std::int64_t pe) { return push(item, item_bytes_, pe); }
  int epush(std::size_t bytes, const void* item, std::int64_t pe);
  int pull(void* item, std::int64_t* from);
  void* apull(std::int64_t* from, int& error);
  int epull(convey_item_t& result);
  int unpull() noexcept;
  int advance(bool done);
  int reset();

  // ---- for its handlers

  /// Takes the packets from `at` on. Null: malformed.
  detail::Handled receive(const std::byte* at, const std::byte* limit, Header header) noexcept;
  void receive_credit(const Credit& credit) noexcept;

 private:
  /// kInherited: this process is a fork of the rank.
  enum class State : std::uint8_t { kDormant, kWorking, kEndgame, kCleanup, kComplete, kInherited };
  /// The packet for one rank. It is open while it is the last message in its lane and has not been flushed. Each push
  /// checks that, because the router may append to the lane or flush it at any time.
  struct Out {
    std::byte* packet = nullptr;      ///< null: none is open
    std::byte* write = nullptr;       ///< behind the last item
    std::byte* end = nullptr;         ///< behind the message: the lane's `at`, if the packet is open
    std::byte* limit = nullptr;       ///< the last item may end here
    std::size_t bytes = 0;            ///< of each item
    std::uint32_t sequence = 0;       ///< of the buffer
    std::int64_t unacknowledged = 0;  ///< bytes of closed packets
  };
  static constexpr std::int64_t kWindow = 256 << 10;  ///< from this many unacknowledged bytes on, nothing is pushed

  void in_child() noexcept override { state_ = State::kInherited; }
  /// The error for a call that the state does not allow.
  [[nodiscard]] int refusal() const noexcept { return state_ == State::kInherited ? kComms : kState; }
  [[nodiscard]] Lane& lane_of(Rank rank) const noexcept { return *static_cast<Lane*>(core_.lane_of[rank]); }
  int push(const void* item, std::size_t bytes, std::int64_t pe);
  int open_packet(const void* item, std::size_t bytes, Rank to) noexcept;
  void close_packet(Out& out) noexcept;
  /// Sends a packet with these items. Returns the packet's address, or null if there is no room.
  std::byte* try_packet(Rank to, PacketHead head, const void* items, std::size_t bytes) noexcept;
  bool push_pending() noexcept;
  bool may_pull(int& error) const noexcept;
  std::byte* aligned_item();
  void acknowledge(Rank source, std::size_t bytes) noexcept;
  void acknowledge_spent() noexcept {
    const Arrivals::Spent spent = arrivals_.take_spent();
    if (spent.bytes != 0) acknowledge(spent.source, spent.bytes);
  }
  bool ready() noexcept {
    const bool ready = arrivals_.ready();
    acknowledge_spent();
    return ready;
  }
  bool barrier();

  detail::RuntimeCore& core_;
  detail::Agreement& agreement_;
  const std::uint32_t data_, credit_;
  const Traits traits_;
  std::uint32_t& epoch_;
  const std::size_t packet_bytes_;  ///< of a packet, at most
  const Rank ranks_;

  State state_ = State::kDormant;
  std::size_t item_bytes_ = 0, align_ = 1;
  std::vector<Out> outs_;
  Arrivals arrivals_;
  std::vector<std::size_t> spent_;  ///< by source: bytes of packets that were pulled and not yet acknowledged
  struct {
    Bytes item;
    std::size_t at = 0;
    Rank to = 0;
  } pending_;  ///< the large item that is leaving; empty: none
  AlignedBytes scratch_;
  std::size_t scratch_bytes_ = 0;

  std::uint64_t arrived_ = 0;
  int failure_ = 0;
  std::array<std::int64_t, convey_CUMULATIVE> counts_{}, before_{};
  std::uint32_t told_ = 0;
};

/// Most items have one of these sizes, for which memcpy would spend more time on choosing a method than on copying.
inline void copy_item(void* to, const void* from, std::size_t bytes) noexcept {
  switch (bytes) {
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 16:
      std::memcpy(to, from, 16);
      return;
    default:
      if (bytes != 0) std::memcpy(to, from, bytes);
  }
}

inline int Conveyor::push(const void* item, std::size_t bytes, std::int64_t pe) {
  if (state_ != State::kWorking) [[unlikely]]
    return refusal();
  if (static_cast<std::uint64_t>(pe) >= ranks_) [[unlikely]]
    return kRange;
  Out& out = outs_[static_cast<std::size_t>(pe)];
  Lane& lane = lane_of(static_cast<Rank>(pe));
  const bool open =
      out.packet != nullptr && out.end == lane.at && out.packet >= lane.flushed && out.sequence == lane.ring.sequence();
  if (open && bytes == out.bytes && bytes <= static_cast<std::size_t>(out.limit - out.write)) [[likely]] {
    copy_item(out.write, item, bytes);
    out.write += bytes;
    Header header = Header::load(out.packet);
    header.word += bytes;
    header.store(out.packet);
    lane.at = out.end = out.packet + header.stride();
    ++counts_[convey_PUSHES];
    return convey_OK;
  }
  return open_packet(item, bytes, static_cast<Rank>(pe));
}

inline bool Conveyor::may_pull(int& error) const noexcept {
  const bool may = under_way();
  error = may || state_ == State::kComplete ? static_cast<int>(convey_FAIL) : refusal();
  return may;
}

inline int Conveyor::pull(void* item, std::int64_t* from) {
  int error = 0;
  if (!may_pull(error)) [[unlikely]]
    return error;
  if (!ready()) return convey_FAIL;
  ++counts_[convey_PULLS];
  const std::byte* const at = arrivals_.item();
  const bool fits = arrivals_.bytes() == item_bytes_;
  arrivals_.take();
  if (!fits) [[unlikely]]
    return kMisfit;
  copy_item(item, at, item_bytes_);
  if (from != nullptr) *from = arrivals_.source();
  return convey_OK;
}

}  // namespace wherry::route::convey
