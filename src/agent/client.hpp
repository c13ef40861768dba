// SPDX-License-Identifier: Apache-2.0
// One client as the agent knows it: its control connection, the steps of the handshake, its endpoint and completion
// records.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/frame_channel.hpp"
#include "base/unix_socket.hpp"
#include "fabric/mailbox.hpp"
#include "session/client.hpp"
#include "session/metrics.hpp"
#include "session/plane.hpp"

namespace wherry {

class AgentClient final : public session::Client {
 public:
  enum class State { kConnected, kGreeted, kAttached, kWired, kProbing, kReady };

  AgentClient(std::unique_ptr<ByteStream> stream, std::string from)
      : channel(std::move(stream)), from_(std::move(from)) {}
  ~AgentClient() override;
  AgentClient(const AgentClient&) = delete;
  AgentClient& operator=(const AgentClient&) = delete;

  [[nodiscard]] std::uint64_t id() const noexcept override { return session; }
  [[nodiscard]] const std::string& name() const noexcept override { return hello.name.empty() ? from_ : hello.name; }
  [[nodiscard]] std::uint32_t pid() const noexcept override { return hello.pid; }
  [[nodiscard]] fabric::Endpoint& endpoint() noexcept override { return endpoint_; }
  [[nodiscard]] fabric::Worker& worker() noexcept override { return *plane->worker; }
  [[nodiscard]] const fabric::Region& arena_region() const noexcept override { return plane->arena; }
  [[nodiscard]] fabric::ProcessReader* reader() noexcept override { return reader_ ? &*reader_ : nullptr; }
  [[nodiscard]] std::uint32_t max_tickets() const noexcept override { return max_tickets_; }
  [[nodiscard]] std::uint32_t epoch() const noexcept override { return epoch_; }
  void complete(std::uint64_t ticket, StatusCode code, const session::CompletionRecord& fields) noexcept override;
  bool reconnect() override;

  /// Connects to the client's worker and finds its completion records.
  Status attach(session::Attach message);
  /// Puts one word, which sets up the client's side of the connection before the probe is timed.
  Status post_wireup();
  [[nodiscard]] bool wired() const noexcept { return wireup_posted_ && wireup_.pending() == 0; }
  [[nodiscard]] bool pinged() const noexcept { return pinged_; }
  void on_ping() noexcept { pinged_ = true; }
  /// Posts one get from each kind of the client's memory. kUnsupported, with cause and remedy, if this transport cannot
  /// read that memory.
  Status post_probe();
  /// Sets `verdict` when both gets are done or `late`. kUnsupported without a verdict if a get failed.
  Result<bool> probe_done(bool late);
  [[nodiscard]] bool probe_pending() const noexcept {
    return probe_ && probe_->heap.pending() + probe_->allocated.pending() != 0;
  }
  /// The session is ready: frees the probe's resources.
  void end_probe() noexcept { probe_.reset(); }
  /// Forwards the client's messages to `deliver(kind, message)`, a few in each call. True if there was a message.
  /// kProtocol: the client's memory no longer holds a valid mailbox.
  template <typename Deliver>
  Result<bool> read_mailbox(Deliver deliver);
  /// Queues a fabric message of a client with a mailbox until the mailbox record for it is read.
  void defer(ByteView message) {
    if (deferred_bytes_ + message.size() > kMaxDeferredBytes) {
      fail({StatusCode::kResourceExhausted, "the client sends messages that its mailbox does not announce"});
      return;
    }
    deferred_bytes_ += message.size();
    deferred_.emplace_back(message.begin(), message.end());
  }
  /// The next tend() returns `why`.
  void fail(Status why) noexcept override {
    if (broken_) broken_ = std::move(why);
  }
  [[nodiscard]] bool has_mailbox() const noexcept { return static_cast<bool>(mailbox_); }
  /// Advances outcomes in flight by one step. True if one advanced.
  bool push_puts() noexcept;
  /// If an outcome was lost, reconnects and resends all that did not arrive. An error means that the client is
  /// unreachable: the session must end, because its tickets would wait for ever.
  Status tend();
  [[nodiscard]] bool puts_pending() const noexcept { return !puts_.empty(); }

  /// Labels that distinguish this client's metrics.
  [[nodiscard]] std::string label() const {
    return session::MetricsWriter::label("session", std::to_string(number)) + "," +
           session::MetricsWriter::label("name", name());
  }

  FrameChannel channel;
  std::optional<PeerCredentials> credentials;  ///< of who came through the Unix socket
  State state = State::kConnected;
  std::uint64_t state_since = 0;  ///< now_ns()
  session::Hello hello;
  std::uint64_t session = 0;
  std::uint64_t link = 0;            ///< names it where its data connection is made
  std::unique_ptr<ByteStream> data;  ///< that connection, until attach() uses it
  [[nodiscard]] bool awaits_data() const noexcept {
    return state == State::kGreeted && plane->context->transport() == Transport::kTcp && data == nullptr;
  }
  session::Plane* plane = nullptr;
  session::VerdictMessage verdict;
  bool verdict_sent = false;
  std::uint32_t watched = 0;  ///< events that epoll reports of its control connection
  std::uint64_t number = 0;   ///< counts sessions: what status and metrics call it, for `session` is a secret

 private:
  /// An outcome in flight to a client whose completion records are not mapped here. It is kept until it has arrived,
  /// even if the connection fails meanwhile.
  struct PutOp {
    /// The record's word is put after its fields have arrived. UCX's fence could also order the two puts, but it waits
    /// for the client.
    enum class Step : std::uint8_t { kQueued, kFields, kWord, kArrived };
    Step step = Step::kQueued;
    session::CompletionRecord record;
    std::uint64_t at = 0;  ///< the record's address in the client
    unsigned attempts = 0;
    fabric::Completion done;
  };
  struct Probe {
    std::array<std::byte, 2 * session::kProbeWords * sizeof(std::uint64_t)> page;
    fabric::Region region;
    fabric::Completion heap, allocated;
  };
  Status put(PutOp& op, std::size_t from, std::size_t bytes);
  bool push_some();

  std::string from_;
  fabric::Endpoint endpoint_;
  session::Attach attach_;
  fabric::RemoteRegion completions_, heap_probe_, alloc_probe_;
  fabric::Completion wireup_;
  std::unique_ptr<Probe> probe_;
  std::uint64_t wireup_word_ = 0;
  bool wireup_posted_ = false;
  bool pinged_ = false;
  std::uint32_t max_tickets_ = 0;
  std::uint32_t epoch_ = 1;
  std::optional<fabric::ProcessReader> reader_;
  fabric::RemoteRegion mailbox_region_;
  fabric::MailboxReader mailbox_;
  static constexpr std::size_t kMaxDeferredBytes = std::size_t{64} << 20;
  std::deque<Bytes> deferred_;
  std::size_t deferred_bytes_ = 0;
  bool awaiting_fabric_ = false;  ///< the record read last stands for a message that has not arrived yet
  std::uint8_t awaited_kind_ = 0;
  std::deque<std::unique_ptr<PutOp>> puts_;        ///< in the order of complete()
  bool put_failed_ = false;                        ///< this connection has lost one
  std::vector<std::unique_ptr<PutOp>> lost_puts_;  ///< sent again, but UCX never reported the first try
  Status broken_;                                  ///< why the client cannot be reached any more
};

template <typename Deliver>
Result<bool> AgentClient::read_mailbox(Deliver deliver) {
  constexpr int kMessagesAtATime = 16;
  bool worked = false;
  for (int i = 0; i < kMessagesAtATime; ++i) {
    if (!awaiting_fabric_) {
      fabric::MailboxRecord record;
      const auto outcome = mailbox_.try_read(record);
      if (outcome == fabric::MailboxReader::Outcome::kEmpty) break;
      if (outcome == fabric::MailboxReader::Outcome::kMalformed) {
        return Status(StatusCode::kProtocol, "the client's mailbox was overwritten");
      }
      worked = true;
      if (!record.payload.empty()) {
        deliver(record.kind, record.payload);
        continue;
      }
      awaiting_fabric_ = true;
      awaited_kind_ = record.kind;
    }
    if (deferred_.empty()) break;
    const Bytes message = std::move(deferred_.front());
    deferred_.pop_front();
    deferred_bytes_ -= message.size();
    awaiting_fabric_ = false;
    worked = true;
    deliver(awaited_kind_, message);
  }
  return worked;
}

}  // namespace wherry
