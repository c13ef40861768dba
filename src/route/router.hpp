// SPDX-License-Identifier: Apache-2.0
// What a rank and a routing agent have in common: lanes to next hops, inputs from previous ones, and the kernel that
// moves messages from these to those (paper 001 section 3, Algorithm 1). Its cost depends on messages and bytes, not on
// how many lanes, inputs or ranks there are. One thread; no locks, no allocation, no system call.
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

/// Why buffers left.
enum class Flush : std::uint8_t { kFull, kIdle, kTimeout, kExplicit };

/// The way to one next hop.
///   start <= flushed <= at <= end: open, messages may be written
///   end <= at: a pack is open, which whole messages must end first: Router::room() does
///   end == at while nothing is unflushed, so that the next message passes through Router::room(), which notes that
///   there is something to flush; without an open buffer, all are null
struct Lane : detail::LaneFront {
  RingWriter ring;
  Bells bells;           ///< of the reader
  std::size_t bell = 0;  ///< which of them tells it of this lane
  std::byte* start = nullptr;
  std::byte* flushed = nullptr;
  std::byte* pack_start = nullptr;
  std::uint64_t written = 0;   ///< bytes that its reader has been shown, ever
  std::uint32_t unpacked = 0;  ///< packs do not pay here at present: so many calls of begin_pack() are in vain
  bool direct = false;         ///< ends at the only rank that it leads to
  bool armed = false;          ///< listed in Router::armed_
  bool closed = false;         ///< its reader has left: see Router::close()
};

/// Connects a lane with input `input` of an inbox that this process can write.
void connect(Lane& lane, InboxShape shape, std::byte* inbox, std::size_t input);

/// The end of a way from a previous hop.
struct Input {
  RingReader ring;
  bool waiting = false;  ///< stopped at a message whose lane was full: to be tried again
  bool broken = false;   ///< holds what no writer of ours wrote; ignored from then on
};

struct RouterCounts {
  std::uint64_t bytes_out = 0, bytes_in = 0, forwarded_bytes = 0, forwarded = 0, transfers = 0, blocked = 0;
  std::uint64_t flushes[4] = {};  ///< by Flush
};

class Router {
 public:
  static constexpr Rank kNobody = ~Rank{0};
  /// Lanes and inputs keep their places. `largest`: what a buffer takes at most, in every lane. `mine`: the rank whose
  /// messages are not forwarded; none: kNobody.
  Router(std::size_t lanes, std::size_t inputs, std::size_t largest, Rank mine);
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  [[nodiscard]] std::span<Lane> lanes() noexcept { return lanes_; }
  [[nodiscard]] std::span<Input> inputs() noexcept { return inputs_; }
  /// `words` for bells of every input.
  void set_bells(std::uint64_t* words) noexcept { bells_ = Bells(words); }
  /// The next hop of each rank, by lane; and which lanes end at a rank, not at an agent (none given: no lane does).
  void set_table(const std::vector<std::uint32_t>& lane_of_rank, const std::vector<bool>& ends_at_rank = {});
  [[nodiscard]] detail::LaneFront* const* table() const noexcept { return table_.data(); }
  [[nodiscard]] Rank ranks() const noexcept { return static_cast<Rank>(table_.size()); }
  [[nodiscard]] Lane& lane_of(Rank rank) noexcept { return *static_cast<Lane*>(table_[rank]); }

  [[nodiscard]] std::uint32_t index_of(const Lane& lane) const noexcept {
    return static_cast<std::uint32_t>(&lane - lanes_.data());
  }

  /// Space for `stride` bytes in the lane's open buffer, opening the next one if need be; null: its reader is behind,
  /// or has left, and then a message for rank `to` is undeliverable(). Precondition: stride <= largest().
  std::byte* room(Lane& lane, std::size_t stride, Rank to) noexcept;
  /// Makes the space that room() has just returned for a message with this header the start of a pack, at lane.at;
  /// false: it should be an ordinary message.
  bool begin_pack(Lane& lane, Header header) noexcept;
  /// Appends a message to a lane, of which `copy(to)` writes the payload. False: there is no room().
  template <typename Copy>
  [[nodiscard]] bool try_append(Lane& lane, Header header, Copy copy) noexcept {
    const std::size_t stride = header.stride();
    if (room(lane, stride, header.to()) == nullptr) return false;
    lane.append(header, stride, copy);
    return true;
  }
  /// Appends a message to a lane, as the start of a pack if that pays. False: there is no room().
  [[nodiscard]] bool try_put(Lane& lane, Header header, std::span<const std::byte> payload) noexcept;
  /// The reader of the lane has left the job: room() finds none any more, and forward() drops what is for it.
  void close(Lane& lane) noexcept;
  /// Nothing is written or read any more: the lanes and inputs are another process', or this one has left. Callable in
  /// the midst of any other call.
  void abandon() noexcept;
  [[nodiscard]] bool abandoned() const noexcept { return abandoned_; }
  /// A message of the application for `rank` will not arrive, since somebody on its way has left.
  void lose(Rank rank) noexcept {
    undeliverable_ = true;
    undeliverable_to_ = rank;
  }
  /// Whether a message of the application was for a closed lane, or is lost otherwise.
  [[nodiscard]] bool undeliverable() const noexcept { return undeliverable_; }
  /// Its rank; kNobody: not known.
  [[nodiscard]] Rank undeliverable_to() const noexcept { return undeliverable_to_; }
  /// What a buffer takes at most.
  [[nodiscard]] std::size_t largest() const noexcept { return largest_; }
  /// Lets readers see all that was written. True: there was something.
  bool flush(Flush why) noexcept;
  void flush(Lane& lane, Flush why) noexcept;
  /// The same once `after_ns` have passed since the first call that followed a flush of all lanes.
  void flush_late(std::uint64_t after_ns) noexcept {
    const std::uint64_t now = now_ns();
    if (flush_at_ == 0) flush_at_ = now + after_ns;
    if (now >= flush_at_) flush(Flush::kTimeout);
  }
  /// Whether there is something to flush.
  [[nodiscard]] bool armed() const noexcept { return !armed_.empty(); }

  /// Where forward() stopped, and why.
  struct Stop {
    enum class Why : std::uint8_t { kEnd, kMine, kBlocked, kMalformed } why;
    const std::byte* at;
  };
  /// Copies messages towards their ranks, from `from` on, until the first that cannot go or is for rank `mine`.
  Stop forward(const std::byte* from, const std::byte* to) noexcept;

  /// Reads what has come in an input: a ring's worth at most, so that one source keeps neither the others nor the
  /// caller waiting. `mine(from, to)` takes the messages for rank `mine` at `from`; it returns where they end, or null:
  /// those bytes are not a message. The other messages go towards their ranks. Afterwards input.waiting says that some
  /// are left, input.broken that the writer wrote something else than messages. True: something was read.
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
        input.broken = true;
        return worked;
      }
      if (stop.why == Why::kBlocked) break;
    }
    input.waiting = true;
    return worked;
  }
  /// Calls `drain(Input&)` for each input that has something new, or is waiting.
  template <typename Drain>
  void each_input(Drain drain) {
    for (std::size_t word = 0; word < waiting_.size(); ++word) {
      std::uint64_t bits = waiting_[word] | bells_.take(word);
      waiting_[word] = 0;
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t index = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        if (index >= inputs_.size()) break;
        Input& input = inputs_[index];
        if (input.broken || !input.ring) continue;
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
  std::vector<Lane*> armed_;
  std::uint64_t flush_at_ = 0;  ///< now_ns() from which on flush_late() flushes; 0: not set since the last flush
  Bells bells_;
  bool abandoned_ = false;
  bool undeliverable_ = false;
  Rank undeliverable_to_ = kNobody;
  const std::size_t largest_;
  const Rank mine_;
};

}  // namespace wherry::route
