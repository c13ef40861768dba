// SPDX-License-Identifier: Apache-2.0
// Lanes to processes whose memory cannot be mapped: what is written into the lane's ring, which lies here, is sent over
// the network and written into the ring of an input there. The receiver gives a credit back for each transfer that it
// has room for, so that what is under way never exceeds the buffers of one lane. Every transfer holds whole messages:
// their order does not matter.
//
//   sender                                        receiver
//   Lane -> ring (here) -> BridgeOut  -- bytes -> BridgeIn -> ring (there) -> Input
//                                     <- credits --
//                                     <- left --      when the receiver leaves the job
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "route/inbox.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

/// Ahead of everything that crosses a bridge.
struct BridgeHead {
  std::uint64_t secret = 0;  ///< the receiver's, from its card
  enum class Kind : std::uint32_t { kBytes, kCredits, kLeft } kind = Kind::kBytes;
  std::uint32_t index = 0;    ///< kBytes: the input; otherwise the lane, whose reader gives credits or has left
  std::uint32_t credits = 0;  ///< kCredits: how many
  std::uint32_t reserved = 0;
};
static_assert(sizeof(BridgeHead) == 24);
/// The active message that all of it travels as.
inline constexpr unsigned kBridgeMessage = 31;

class BridgeOut {
 public:
  /// `secret` and `input` are the receiver's, whom `who` names in errors.
  BridgeOut(RingShape shape, fabric::Endpoint endpoint, std::uint64_t secret, std::uint32_t input, std::string who);
  [[nodiscard]] std::byte* inbox() noexcept { return memory_.get(); }  ///< an inbox of one input
  void add_credits(std::uint32_t credits) noexcept { credits_ += credits; }
  /// Sends what has been written, as far as credits go; notices that the receiver cannot be reached.
  bool progress() noexcept;
  bool say_bye() { return endpoint_.say_bye(); }
  /// The reader takes no part in the job any more: from now on nothing is sent.
  void reader_left() noexcept { left_ = true; }
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// The rank of an application's message that the reader's leaving has cut off, if there is one.
  [[nodiscard]] std::optional<Rank> undelivered() const noexcept { return undelivered_; }
  [[nodiscard]] const std::string& who() const noexcept { return who_; }
  /// All that was written has been sent and received, or never will be. After a flush of the lane.
  [[nodiscard]] bool settled() noexcept {
    if (!status_ || left_) return true;
    const RingReader::Part part = ring_.peek();
    return part.malformed || (part.empty() && credits_ == ring_.shape().buffers);
  }
  /// The first `bytes` of all that was ever written have been sent, or never will be.
  [[nodiscard]] bool has_sent(std::uint64_t bytes) const noexcept;
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  struct Transfer {
    Bytes bytes;
    std::uint64_t begin = 0;  ///< what was written before it, in bytes
    fabric::Completion done;
  };
  struct FreeAligned {
    void operator()(std::byte* memory) const noexcept;
  };
  bool drop() noexcept;
  std::unique_ptr<std::byte, FreeAligned> memory_;
  RingReader ring_;
  BridgeHead head_;
  std::uint32_t credits_;
  std::uint64_t taken_ = 0;  ///< bytes of the ring
  std::vector<std::unique_ptr<Transfer>> transfers_;
  bool left_ = false;
  std::optional<Rank> undelivered_;
  std::string who_;
  Status status_;
  fabric::Endpoint endpoint_;  ///< goes first: it may have to tell the transfers
};

class BridgeIn {
 public:
  /// `inbox`: of this process; `secret` and `lane` are the sender's, whom `who` names in errors.
  BridgeIn(InboxShape shape, std::byte* inbox, std::uint32_t input, fabric::Endpoint endpoint, std::uint64_t secret,
           std::uint32_t lane, std::string who);
  /// Tells the sender that nobody reads here any more. True: it has gone, or never will; false: ask again.
  bool say_left();
  [[nodiscard]] bool streams() const noexcept { return endpoint_.streams(); }
  bool say_bye() { return endpoint_.say_bye(); }
  /// What came over. False: more than the credits allowed, or not what fits a buffer.
  [[nodiscard]] bool receive(ByteView bytes);
  /// Moves what waits into the ring and gives credits back.
  bool progress() noexcept;
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  bool write(ByteView bytes) noexcept;
  RingWriter ring_;
  Bells bells_;
  std::uint32_t input_;
  std::byte* start_ = nullptr;
  std::uint32_t used_ = 0;
  std::deque<Bytes> waiting_;
  std::uint32_t owed_ = 0;
  BridgeHead credit_, left_;
  fabric::Completion credit_sent_, left_sent_;
  bool said_left_ = false;
  std::string who_;
  Status status_;
  fabric::Endpoint endpoint_;  ///< goes first: it may have to tell the completions
};

}  // namespace wherry::route
