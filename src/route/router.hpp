// SPDX-License-Identifier: Apache-2.0
// The common core of ranks and routing agents: lanes to next hops, inputs from previous hops, and the kernel that moves
// messages from inputs to lanes (paper 001 section 3, Algorithm 1). Its cost depends on messages and bytes, not on the
// number of lanes, inputs or ranks. One thread; no locks, no allocation, no system call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "route/inbox.hpp"
#include "wherry/route.hpp"

namespace wherry::route {

/// Why a buffer, or a part of it, was published to its reader.
enum class Flush : std::uint8_t { kFull, kIdle, kTimeout, kExplicit };

/// The writing end of a ring towards one next hop. Its buffer is in one of these states:
///   none open           start, flushed, at, end, pack_start and pack_end are null
///   open                start <= flushed <= at <= end: messages can be appended
///   open, all flushed   at == flushed == end: the next message passes through Router::room(), which lists the lane
///   open, with a pack   end <= at <= pack_end: Router::room() ends the pack before a message with another header
struct Lane : detail::LaneFront {
  RingWriter ring;           ///< none: not connected
  Doorbells doorbells;       ///< of the reader
  std::size_t doorbell = 0;  ///< this lane's among them
  std::byte* start = nullptr;
  std::byte* flushed = nullptr;     ///< the reader can see the bytes before it
  std::byte* pack_start = nullptr;  ///< the header of the open pack
  std::uint64_t written = 0;        ///< bytes that the reader can see, ever
  std::uint32_t skip_packs = 0;     ///< packs do not pay at present: so many calls of begin_pack() return false
  bool direct = false;              ///< ends at the only rank that it leads to, so that packs can be used
  bool armed = false;               ///< listed in Router::armed_
  bool closed = false;              ///< its reader has left: see Router::close()
};

/// Connects a lane to input `input` of an inbox that this process can write to.
void connect(Lane& lane, InboxShape shape, std::byte* inbox, std::size_t input);

/// The reading end of a ring from one previous hop.
struct Input {
  RingReader ring;         ///< none: not connected
  bool waiting = false;    ///< some of it is left: a lane was full, or a ring's worth has been read in this turn
  bool malformed = false;  ///< holds something other than messages: not read any more
};

struct RouterCounts {
  std::uint64_t bytes_out = 0, bytes_in = 0, forwarded_bytes = 0, forwarded = 0, transfers = 0, blocked = 0;
  std::uint64_t flushes[4] = {};  ///< by Flush

  RouterCounts& operator+=(const RouterCounts& more) noexcept {
    bytes_out += more.bytes_out;
    bytes_in += more.bytes_in;
    forwarded_bytes += more.forwarded_bytes;
    forwarded += more.forwarded;
    transfers += more.transfers;
    blocked += more.blocked;
    for (std::size_t i = 0; i < std::size(flushes); ++i) flushes[i] += more.flushes[i];
    return *this;
  }
};

class Router {
 public:
  static constexpr Rank kNobody = ~Rank{0};
  /// Lanes and inputs never move in memory. `buffer_bytes`: the size of a buffer in all lanes. `mine`: the rank whose
  /// messages are not forwarded; kNobody: there is none.
  Router(std::size_t lanes, std::size_t inputs, std::size_t buffer_bytes, Rank mine);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  [[nodiscard]] std::span<Lane> lanes() noexcept { return lanes_; }
  [[nodiscard]] std::span<Input> inputs() noexcept { return inputs_; }
  /// Uses the rings of this inbox as inputs. It must outlive the router. Precondition: it has inputs() rings.
  void read_from(InboxShape shape, std::byte* inbox) noexcept;
  /// Sets the lane to each rank, and whether each lane ends at a rank or at an agent (empty: all at agents).
  void set_table(const std::vector<std::uint32_t>& lane_of_rank, const std::vector<bool>& ends_at_rank = {});
  [[nodiscard]] detail::LaneFront* const* table() const noexcept { return table_.data(); }
  [[nodiscard]] Rank ranks() const noexcept { return static_cast<Rank>(table_.size()); }
  [[nodiscard]] Lane& lane_of(Rank rank) noexcept { return *static_cast<Lane*>(table_[rank]); }

  [[nodiscard]] std::uint32_t index_of(const Lane& lane) const noexcept {
    return static_cast<std::uint32_t>(&lane - lanes_.data());
  }

  /// Returns space for `stride` bytes in the lane's open buffer; opens the next buffer if needed. Null: the reader is
  /// behind or has left. If it has left, the message to rank `to` is undeliverable(). Needs stride <= buffer_bytes().
  std::byte* room(Lane& lane, std::size_t stride, Rank to) noexcept;
  /// Starts a pack at the space that room() has just returned for a message with this header. False: append the message
  /// without a pack.
  bool begin_pack(Lane& lane, Header header) noexcept;
  /// Appends a message to a lane. `copy(to)` writes its payload. False: no room.
  template <typename Copy>
  [[nodiscard]] bool try_append(Lane& lane, Header header, Copy copy) noexcept {
    const std::size_t stride = header.stride();
    if (room(lane, stride, header.to()) == nullptr) return false;
    lane.append(header, stride, copy);
    return true;
  }
  /// Appends a message to a lane, as the start of a pack if that saves bytes. False: no room.
  [[nodiscard]] bool try_put(Lane& lane, Header header, std::span<const std::byte> payload) noexcept;
  /// Call it when the lane's reader has left: from now on room() returns null, and forward() drops its messages.
  void close(Lane& lane) noexcept;
  /// Stops all writing and reading: this process has left, or it is a child of fork(), which does not own the lanes and
  /// inputs. May be called inside any other call.
  void abandon() noexcept;
  [[nodiscard]] bool abandoned() const noexcept { return abandoned_; }
  /// Records that an application message to `rank` will not arrive, because a hop on its way has left.
  void lose(Rank rank) noexcept {
    undeliverable_ = true;
    undeliverable_to_ = rank;
  }
  /// Whether any application message will not arrive.
  [[nodiscard]] bool undeliverable() const noexcept { return undeliverable_; }
  /// The destination of that message. kNobody: unknown.
  [[nodiscard]] Rank undeliverable_to() const noexcept { return undeliverable_to_; }
  /// The size of each lane's buffers.
  [[nodiscard]] std::size_t buffer_bytes() const noexcept { return buffer_bytes_; }
  /// Publishes all written messages to the readers. True: there were any.
  bool flush(Flush why) noexcept;
  void flush(Lane& lane, Flush why) noexcept;
  /// Like flush(), but only when `after_ns` have passed since the first call after the last flush of all lanes.
  void flush_late(std::uint64_t after_ns) noexcept {
    const std::uint64_t now = now_ns();
    if (flush_at_ == 0) flush_at_ = now + after_ns;
    if (now >= flush_at_) flush(Flush::kTimeout);
  }
  /// Whether there is something to flush.
  [[nodiscard]] bool armed() const noexcept { return !armed_.empty(); }

  /// The position at which forward() stopped, and the reason.
  struct Stop {
    enum class Why : std::uint8_t { kEnd, kMine, kBlocked, kMalformed } why;
    const std::byte* at;
  };
  /// Copies messages from `from` on into their lanes, up to the first one without room or for rank `mine`.
  Stop forward(const std::byte* from, const std::byte* to) noexcept;

  /// Reads an input, at most one ring's content, so that other inputs and the caller do not wait for long. `mine(from,
  /// to)` takes the messages for rank `mine` at `from`, and returns where they end, or null if they are malformed.
  /// Other messages are forwarded. Sets input.waiting if messages remain, and input.malformed if the content is
  /// invalid. True: it has read something.
  template <typename Mine>
  bool drain(Input& input, Mine mine) {
    using Why = Stop::Why;
    bool worked = false;
    const std::uint32_t first = input.ring.sequence();
    while (input.ring.sequence() - first <= input.ring.shape().buffers) {
      const RingReader::Part part = input.ring.peek();
      if (!part.malformed && part.empty()) return worked;
      Stop stop{part.malformed ? Why::kMalformed : Why::kMine, part.from};
      while (stop.why == Why::kMine) {
        const std::byte* const next = mine(stop.at, part.to);
        if (abandoned_) [[unlikely]]
          return worked;
        if (next == nullptr) [[unlikely]] {
          stop.why = Why::kMalformed;
          break;
        }
        stop = {Why::kEnd, next};
        if (next != part.to) stop = forward(next, part.to);
      }
      const auto bytes = static_cast<std::size_t>(stop.at - part.from);
      counts.bytes_in += bytes;
      input.ring.advance(bytes);
      worked |= bytes != 0;
      if (stop.why == Why::kMalformed) [[unlikely]] {
        input.malformed = true;
        return worked;
      }
      if (stop.why == Why::kBlocked) break;
    }
    input.waiting = true;
    return worked;
  }
  /// Calls `drain(Input&)` for each input that is waiting or whose doorbell is set.
  template <typename Drain>
  void each_input(Drain drain) {
    for (std::size_t word = 0; word < waiting_.size(); ++word) {
      std::uint64_t bits = waiting_[word] | doorbells_.take(word);
      waiting_[word] = 0;
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t index = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (index >= inputs_.size()) break;
        Input& input = inputs_[index];
        if (input.malformed || !input.ring) continue;
        input.waiting = false;
        drain(input);
        if (abandoned_) [[unlikely]]
          return;
        if (input.waiting) waiting_[word] |= bits & -bits;
      }
    }
  }

  RouterCounts counts;

 private:
  void arm(Lane& lane) noexcept;
  static void end_pack(Lane& lane) noexcept;
  void publish(Lane& lane, Flush why) noexcept;

  std::vector<Lane> lanes_;
  std::vector<Input> inputs_;
  std::vector<detail::LaneFront*> table_;
  std::vector<std::uint64_t> waiting_;  ///< a bit for each input that is waiting
  std::vector<Lane*> armed_;            ///< those that room() was called for since the last flush
  std::uint64_t flush_at_ = 0;  ///< now_ns() from which on flush_late() flushes; 0: not set since the last flush
  Doorbells doorbells_;
  bool abandoned_ = false;
  bool undeliverable_ = false;
  Rank undeliverable_to_ = kNobody;
  const std::size_t buffer_bytes_;
  const Rank mine_;
};

}  // namespace wherry::route
