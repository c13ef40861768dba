// SPDX-License-Identifier: Apache-2.0
// Bridges: lanes to processes whose memory cannot be mapped. The sender writes into a ring in its own memory. The
// bridge sends its content over the network into an input's ring. The receiver returns a credit for each transfer that
// it has room for, so the bytes in flight never exceed one lane's buffers. Transfers hold whole messages, in any order.
//
//   sender                                        receiver
//   Lane -> its own ring -> BridgeOut  -- bytes -> BridgeIn -> ring of the inbox -> Input
//                                      <- credits --
//                                      <- left --      when the receiver leaves the job
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/aligned.hpp"
#include "fabric/fabric.hpp"
#include "route/inbox.hpp"
#include "wherry/route_message.hpp"

namespace wherry::route {

/// The head of every transfer over a bridge.
struct BridgeHead {
  std::uint64_t secret = 0;  ///< the receiver's, from its address
  enum class Kind : std::uint32_t { kBytes, kCredits, kLeft } kind = Kind::kBytes;
  std::uint32_t index = 0;    ///< kBytes: the input. kCredits, kLeft: the lane whose reader sends them
  std::uint32_t credits = 0;  ///< kCredits: how many transfers more
  std::uint32_t reserved = 0;
};
static_assert(sizeof(BridgeHead) == 24);
/// The active-message id of bridge transfers.
inline constexpr unsigned kBridgeMessage = 31;

/// The sender's end.
class BridgeOut {
 public:
  /// `secret` and `input` are the receiver's. `who` names it in errors.
  BridgeOut(RingShape shape, fabric::Endpoint endpoint, std::uint64_t secret, std::uint32_t input, std::string who);
  /// The inbox whose only input is the ring to write into.
  [[nodiscard]] std::byte* inbox() noexcept { return memory_.get(); }
  void add_credits(std::uint32_t credits) noexcept { credits_ += credits; }
  /// Sends written messages as far as credits allow, and checks that the receiver is reachable. True: something was
  /// sent.
  bool progress() noexcept;
  bool say_bye() { return endpoint_.say_bye(); }
  /// Call it when the receiver has left the job: from now on nothing is sent.
  void reader_left() noexcept { left_ = true; }
  [[nodiscard]] bool left() const noexcept { return left_; }
  /// The destination of an application message that was dropped because the receiver has left; else nullopt.
  [[nodiscard]] std::optional<Rank> undelivered() const noexcept { return undelivered_; }
  [[nodiscard]] const std::string& who() const noexcept { return who_; }
  /// Whether all written messages have been received, or can never be received. Precondition: the lane was flushed.
  [[nodiscard]] bool settled() noexcept {
    if (!status_ || left_) return true;
    const RingReader::Part part = ring_.peek();
    return part.malformed || (part.empty() && credits_ == ring_.shape().buffers);
  }
  /// Whether the first `bytes` bytes ever written have been sent, or can never be sent.
  [[nodiscard]] bool has_sent(std::uint64_t bytes) const noexcept;
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  struct Transfer {
    Bytes bytes;
    std::uint64_t begin = 0;  ///< bytes that were written before it
    fabric::Completion done;
  };
  bool drop() noexcept;
  AlignedBytes memory_;
  RingReader ring_;
  BridgeHead head_;
  std::uint32_t credits_;    ///< transfers that the receiver has room for
  std::uint64_t taken_ = 0;  ///< bytes that have been read from the ring
  std::vector<std::unique_ptr<Transfer>> transfers_;
  bool left_ = false;
  std::optional<Rank> undelivered_;
  std::string who_;
  Status status_;
  fabric::Endpoint endpoint_;  ///< destroyed first: it may still report to the transfers
};

/// The receiver's end.
class BridgeIn {
 public:
  /// `inbox`: of this process. `secret` and `lane` are the sender's. `who` names it in errors.
  BridgeIn(InboxShape shape, std::byte* inbox, std::uint32_t input, fabric::Endpoint endpoint, std::uint64_t secret,
           std::uint32_t lane, std::string who);
  /// Tells the sender that this process has left. True: the message was sent or cannot be sent. False: call again.
  bool say_left();
  [[nodiscard]] bool streams() const noexcept { return endpoint_.streams(); }
  bool say_bye() { return endpoint_.say_bye(); }
  /// Takes a transfer that has arrived. False: it exceeds the credits, or does not fit into a buffer.
  [[nodiscard]] bool receive(ByteView bytes);
  /// Moves waiting transfers into the ring and returns credits. True: something was moved or sent.
  bool progress() noexcept;
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  bool write(ByteView bytes) noexcept;
  RingWriter ring_;
  Doorbells doorbells_;
  std::uint32_t input_;
  std::byte* start_ = nullptr;  ///< of the open buffer; null: none is open
  std::uint32_t used_ = 0;      ///< bytes of it
  std::deque<Bytes> waiting_;   ///< transfers that found no room: at most the buffers of a ring
  std::uint32_t owed_ = 0;      ///< credits to return
  BridgeHead credit_, left_;
  fabric::Completion credit_sent_, left_sent_;
  bool said_left_ = false;
  std::string who_;
  Status status_;
  fabric::Endpoint endpoint_;  ///< destroyed first: it may still report to the completions
};

}  // namespace wherry::route
