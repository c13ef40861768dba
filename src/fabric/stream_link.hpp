// SPDX-License-Identifier: Apache-2.0
// One authenticated connection of the stream transport: messages, gets and puts as frames, in both directions.
//
// A get sends a read frame. The other side checks that the memory is registered, and answers with a data frame and a
// done frame. The data are sent from that memory and received at their destination without a copy between. A put is a
// frame that the other side writes if it permits that. So both are emulated: they need the other side's progress.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/byte_stream.hpp"
#include "base/bytes.hpp"
#include "fabric/completion.hpp"
#include "fabric/stream_frame.hpp"
#include "wherry/status.hpp"

namespace wherry::fabric {

/// Not thread-safe. Neither pump() nor functions that call it block.
class StreamLink final : private FrameReader::Sink {
 public:
  /// Decides what the other side may do. Called for each frame.
  class Host {
   public:
    virtual ~Host() = default;
    [[nodiscard]] virtual bool may_read(std::uint64_t address, std::uint64_t bytes) const = 0;
    [[nodiscard]] virtual bool may_write(std::uint64_t address, std::uint64_t bytes) const = 0;
    [[nodiscard]] virtual std::size_t largest_message() const = 0;
    virtual void on_message(std::uint32_t id, ByteView message) = 0;
  };
  /// The number of reads that may wait for an answer. get() delays reads beyond the limit. A peer that sends more is
  /// disconnected.
  static constexpr std::size_t kMaxReads = 4096;

  /// Messages wait until the link has a stream. `host` must outlive the link.
  explicit StreamLink(Host& host);
  ~StreamLink() override;
  StreamLink(const StreamLink&) = delete;
  StreamLink& operator=(const StreamLink&) = delete;
  void attach(std::unique_ptr<ByteStream> stream);
  [[nodiscard]] ByteStream* stream() noexcept { return stream_.get(); }

  // Like the functions of Endpoint. `done` counts an operation that is not complete when the call returns.
  Status send(std::uint32_t id, ByteView message, Completion& done);
  Status get(std::byte* to, std::uint64_t address, std::size_t bytes, Completion& done);
  Status put(const std::byte* from, std::uint64_t address, std::size_t bytes, Completion& done);
  Status flush(Completion& done);
  /// Announces, once, that this side leaves. Nothing more may be sent afterwards. Returns whether the kernel has
  /// accepted all sent bytes.
  bool say_bye();

  /// Reads and writes without waiting, up to about `budget` bytes in each direction. True if any bytes moved.
  bool pump(std::size_t budget) noexcept;
  /// Whether the last pump() stopped because of its budget and not for lack of bytes.
  [[nodiscard]] bool unfinished() const noexcept { return unfinished_; }
  /// Whether bytes wait until the stream accepts more.
  [[nodiscard]] bool blocked() const noexcept {
    return stream_ != nullptr && status_.ok() &&
           (first_ < queue_.size() || !replies_.empty() || stream_->read_needs_room());
  }
  /// Ok while the connection lives.
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  /// Whether an operation has not yet reported to its Completion.
  [[nodiscard]] bool under_way() const noexcept;
  /// Ends the connection; unfinished operations fail.
  void close(Status why) noexcept;
  /// Marks this as one of two connections with another process. Then its end alone does not show whether the other side
  /// was lost or has left.
  void set_paired() noexcept { paired_ = true; }
  /// Records that the other side is unreachable, even if this connection is intact.
  void lose(Status why) noexcept;
  /// Ok, or why the other side is lost: by lose(), or by the end of an unpaired connection.
  [[nodiscard]] const Status& lost() const noexcept { return paired_ ? lost_ : status_; }
  /// Whether the other side has announced that it leaves.
  [[nodiscard]] bool other_left() const noexcept { return other_left_; }
  [[nodiscard]] std::string kind() const { return "stream/" + (stream_ ? stream_->kind() : std::string("none")); }

 private:
  /// An outgoing frame: the head with a small body, or a body elsewhere. An answer to a read also has the done frame.
  struct Out {
    std::array<std::byte, sizeof(FrameHead) + 8 + kMaxPutBytes> head;
    std::size_t head_bytes = 0;
    ByteView body;
    std::array<std::byte, sizeof(FrameHead) + 8> tail;
    std::size_t tail_bytes = 0;
    bool unreadable = false;  ///< the rest of the body is sent as zeros
    Completion* done = nullptr;
    [[nodiscard]] std::size_t total() const noexcept { return head_bytes + body.size() + tail_bytes; }
  };
  struct Get {
    std::byte* to;
    std::uint64_t address, bytes;
    std::uint32_t number;
    bool filled;
    Completion* done;
  };
  struct Reply {
    std::uint64_t address, bytes;
    std::uint32_t number;
    ReadOutcome outcome;
  };
  Result<std::span<std::byte>> on_head(const FrameHead& head) override;
  Result<std::span<std::byte>> on_part(const FrameHead& head, std::uint64_t have) override;
  Status on_frame(const FrameHead& head) override;
  Status on_read(std::uint32_t number);
  Status on_done(std::uint32_t number);
  Status on_put(ByteView body);
  Out& next_out(FrameType type, std::uint32_t number, std::uint64_t body_bytes);
  void ask();
  void queue_replies();
  Status finish_enqueue(Completion& done);
  bool pump_in(std::size_t budget) noexcept;
  bool pump_out(std::size_t budget) noexcept;
  bool read_in(std::size_t budget);
  bool write_out(std::size_t budget);
  void wrote(std::size_t bytes);

  Host& host_;
  std::unique_ptr<ByteStream> stream_;
  Status status_;
  FrameReader reader_{*this};
  std::vector<std::byte> ahead_;  ///< what was read beyond the frame at hand
  std::array<std::byte, 8 + kMaxPutBytes> small_;
  Bytes message_;
  std::vector<Out> queue_;  ///< from first_ on
  std::size_t first_ = 0;
  std::size_t at_ = 0;  ///< bytes of the first that have gone
  std::deque<Reply> replies_;
  std::deque<Get> gets_;
  std::size_t asked_ = 0;  ///< the first ones of gets_, whose reads are on their way
  std::uint32_t next_read_ = 1;
  bool careful_ = false;  ///< one piece a call, to find the one that cannot be read
  bool unfinished_ = false;
  bool other_left_ = false, said_bye_ = false;
  bool paired_ = false;
  Status lost_;
  bool pumping_in_ = false, pumping_out_ = false;
};

}  // namespace wherry::fabric
