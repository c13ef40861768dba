// SPDX-License-Identifier: Apache-2.0
// The client half of a session: finds an agent, authenticates, and carries requests of any service. One thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/fork.hpp"
#include "base/frame_channel.hpp"
#include "base/socket.hpp"
#include "fabric/fabric.hpp"
#include "fabric/mailbox.hpp"
#include "fabric/stream_auth.hpp"
#include "fabric/tls.hpp"
#include "session/control.hpp"
#include "session/embedded.hpp"

namespace wherry::session {

/// Locks the fabric mutex if another thread may compete for it.
class FabricLock {
 public:
  FabricLock(std::mutex& mutex, bool needed) : lock_(mutex, std::defer_lock) {
    if (needed) lock_.lock();
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// The address of an agent: a socket file if it runs on this machine, else a network address.
struct AgentAddress {
  std::string socket;  ///< empty: it has no Unix socket, or none is known
  std::optional<HostPort> tcp;
  [[nodiscard]] std::string to_string() const { return tcp ? tcp->to_string() : socket; }
};

/// In a child of fork() every call fails (kFailedPrecondition) and the destructor only closes descriptors.
class Connection : private ForkWatch {
 public:
  /// Blocks until the agent has answered and the self-test is done, at most options.connect_timeout. A client without
  /// offloads should request few tickets: each has a completion record in registered memory.
  static Result<std::unique_ptr<Connection>> open(const SessionOptions& options);
  /// Ends the session; an embedded agent drains and exits. A Completion must outlive the session if its send is still
  /// pending.
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Sends a request to a service of the agent. Blocks until the answer arrives, at most request_patience.
  /// kUnsupported: the agent has no such service. kDeadlineExceeded: no answer in time. Then the agent may still
  /// execute the request, and the session continues.
  Result<Bytes> request(std::string_view service, std::string_view method, ByteView payload);
  std::chrono::nanoseconds request_patience = std::chrono::seconds(30);
  /// Like request(), but a refusal by the service is also returned as an answer. An error: there is no answer.
  Result<Response> ask(std::string_view service, std::string_view method, ByteView payload);
  /// Sends a request without waiting for the answer. The answer is ignored, except if abandon() sets a receiver.
  /// Returns the request's number.
  Result<std::uint64_t> tell(std::string_view service, std::string_view method, ByteView payload);
  /// The number of the latest request. Each number is one more than the one before.
  [[nodiscard]] std::uint64_t last_request() const noexcept { return next_request_ - 1; }
  using LateAnswer = std::function<void(const Response&)>;
  /// Stops waiting for the answer to this request. If it arrives later, while another request waits for its answer,
  /// `then` gets it. `then` may call tell(), but not ask(). `name`: for recall().
  void abandon(std::string name, std::uint64_t request, LateAnswer then);
  /// Whether a request abandoned as `name` has no answer yet. That answer will then be ignored.
  bool recall(const std::string& name);
  /// Whether the session uses the agent's Unix socket, which means that the agent runs on this machine.
  [[nodiscard]] bool agent_is_local() const noexcept;
  /// Ok while the agent lives. Otherwise the reason why the session is over: the agent's reason when it ended the
  /// session, or kUnavailable. One system call. Never blocks.
  [[nodiscard]] Status health() noexcept { return agent_gone() ? broken_ : ok_status(); }
  [[nodiscard]] const SessionInfo& info() const noexcept { return info_; }
  /// The secret session id, with which every message on the fabric starts.
  [[nodiscard]] std::uint64_t id() const noexcept { return session_; }

  /// While the returned lock lives, the caller may use context(), worker(), endpoint() and objects made from them.
  /// Every such call needs it, also the destructor of a Region: if the agent's gets are emulated, a thread of the
  /// session makes progress. Without such a thread it costs nothing. Call no other function of the session while you
  /// hold it.
  [[nodiscard]] FabricLock lock_fabric() { return {fabric_mutex_, shared()}; }
  [[nodiscard]] fabric::Context& context() noexcept { return *context_; }
  [[nodiscard]] fabric::Worker& worker() noexcept { return *worker_; }
  [[nodiscard]] fabric::Endpoint& endpoint() noexcept { return endpoint_; }  ///< to the agent
  /// The mailbox is true if the agent reads it; then services get their messages from it. A message over endpoint()
  /// waits at the agent for an empty mailbox record with its service's message id, which keeps the order of messages.
  [[nodiscard]] fabric::MailboxWriter& mailbox() noexcept { return mailbox_; }

 protected:
  using Maker = std::unique_ptr<Connection> (*)();
  /// Opens a session; `make` creates the object of a derived class.
  static Result<std::unique_ptr<Connection>> open(const SessionOptions& options, Maker make);
  Connection() { start_watching(); }
  /// Ends the progress thread and all that may still call a derived class. Call it first in that class's destructor.
  void close() noexcept;
  /// Leaves the agent before the destructor runs. Later calls fail with `why`. All memory, and context(), remain valid.
  /// An embedded agent drains and exits when the returned object is destroyed.
  [[nodiscard]] EmbeddedProcess leave(Status why) noexcept;

  /// Recounts the unsent messages. Called under the lock after progress, also by the progress thread, while unsent_ is
  /// not 0.
  virtual void note_unsent() {}
  [[nodiscard]] bool shared() const noexcept { return threaded_ || unsent_.load(std::memory_order_acquire) != 0; }
  bool agent_gone();
  [[nodiscard]] bool inherited() const noexcept { return inherited_; }

 private:
  void in_child() noexcept override;
  Status find_agent(const SessionOptions& options, const Deadline& deadline, AgentAddress& at, std::string& token);
  struct Ends {
    AgentAddress at;
    std::string token;
    std::shared_ptr<const fabric::Tls> tls;  ///< null: none
  };
  static Result<std::unique_ptr<ByteStream>> connect(const Ends& ends, fabric::Purpose purpose, std::uint64_t key,
                                                     const fabric::Secret& secret, const Deadline& deadline);
  Status handshake(const SessionOptions& options, Transport transport, const Ends& ends, const Deadline& deadline);
  Status wire_up(const Greeting& greeting, const Ends& ends, const Deadline& deadline);
  static Status expect(ControlFrame& frame, ControlType type);
  Bytes next_request(std::string_view service, std::string_view method, ByteView payload);
  Result<Response> answer_to(std::uint64_t id, const Deadline& deadline);
  void on_late_answer(const Response& late);
  void start_progress_thread();

  // The order matters: members are destroyed in reverse order.
  EmbeddedProcess embedded_;
  FrameChannel channel_;
  std::atomic<bool> stop_{false};
  std::thread progress_thread_;

 protected:
  // Protects all calls into the fabric, also registering and unregistering memory. The session's thread needs no lock
  // while there is no progress thread and no unsent message. If messages are unsent (the agent's queue is full), a
  // derived class may make progress from any thread, so all threads lock. `unsent_` increases on the session's thread
  // after its last call into the fabric, and decreases under the lock.
  std::mutex fabric_mutex_;
  bool threaded_ = false;
  std::atomic<std::uint32_t> unsent_{0};

  std::shared_ptr<fabric::Context> context_;
  std::unique_ptr<fabric::Worker> worker_;
  fabric::Endpoint endpoint_;

 private:
  fabric::Region completions_;
  fabric::Region mailbox_memory_;
  fabric::Completion wired_;  ///< of the handshake's ping

 protected:
  fabric::MailboxWriter mailbox_;  ///< none: messages go over the fabric
  CompletionRecord* records_ = nullptr;
  std::uint64_t mask_ = 0;  ///< of a ticket: where its record is

  SessionInfo info_;
  std::uint64_t session_ = 0;
  Status broken_;           ///< why the session is over, once it is
  std::string address_;     ///< of the agent, as it was named or found
  bool inherited_ = false;  ///< this process is a fork of the session's

 private:
  /// The value of broken_ in a forked child. Allocated separately: an offload prefetches the session but not this.
  std::unique_ptr<Status> in_child_ = std::make_unique<Status>(inherited_by_fork("session"));
  std::uint64_t next_request_ = 1;
  struct Abandoned {
    std::uint64_t request;
    LateAnswer then;
  };
  std::unique_ptr<std::map<std::string, Abandoned>> abandoned_ =
      std::make_unique<std::map<std::string, Abandoned>>();  ///< by name; apart, as in_child_
  Transport chosen_ = Transport::kAuto;                      ///< by the agent, in its greeting
};

}  // namespace wherry::session
