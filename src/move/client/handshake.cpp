// SPDX-License-Identifier: Apache-2.0
// Opening a session: find an agent, prove who we are, connect, and sleep while the agent proves that its gets are
// one-sided.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/cpu.hpp"
#include "base/version.hpp"
#include "move/client/session_core.hpp"

namespace wherry::detail {

using fabric::ControlType;

namespace {

/// Some hundred offloads of 16 columns.
constexpr std::size_t kMailboxBytes = std::size_t{256} << 10;
constexpr std::size_t kBuffersAtHand = 32;

std::string program_name() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).filename().string();
}

Status no_fabric(Transport transport) {
  return {
      StatusCode::kDeadlineExceeded,
      fmt::format("no connection over transport '{}' within SessionOptions::connect_timeout", to_string(transport))};
}

Status fill_probe(const fabric::Region& region, std::uint64_t session) {
  for (std::uint64_t i = 0; i < fabric::kProbeWords; ++i) {
    const std::uint64_t word = fabric::probe_word(session, i);
    std::memcpy(region.data() + i * sizeof word, &word, sizeof word);
  }
  return Status::ok();
}

/// Why the handshake failed, with whom, and what to do about it.
Status no_session(const HostPort& at, const std::string& token, const Status& why) {
  const char* remedy = "";
  if (why.code() == StatusCode::kPermissionDenied && token.empty())
    remedy = "; no token was given: set SessionOptions::token, or name the agent's session file instead of its address";
  if (why.code() == StatusCode::kProtocol) remedy = "; is it an agent of Wherry that listens there?";
  return {why.code(), fmt::format("no session with the agent at {}: {}{}", at.to_string(), why.message(), remedy)};
}

Result<fabric::RemoteKey> key_of(const fabric::Region& region) {
  fabric::RemoteKey key;
  key.base = reinterpret_cast<std::uint64_t>(region.data());
  key.size = region.size();
  if (Status s = region.pack_key(key.key); !s) return s;
  return key;
}

}  // namespace

Result<std::unique_ptr<SessionCore>> SessionCore::open(const SessionOptions& options) {
  if (options.max_tickets == 0 || options.max_tickets > 4096 ||
      (options.max_tickets & (options.max_tickets - 1)) != 0) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("max_tickets = {}: want a power of two from 1 to 4096", options.max_tickets));
  }
  const Deadline deadline(options.connect_timeout);
  auto core = std::unique_ptr<SessionCore>(new SessionCore);
  HostPort at;
  std::string token;
  if (Status s = core->find_agent(options, deadline, at, token); !s) return s;
  Status refused;  // why the transport that suits best cannot be had, when nobody asked for it by name
  for (Transport transport = options.transport;; transport = Transport::kTcp) {
    auto socket = connect_tcp(at, deadline);
    if (!socket) {
      if (core->info_.session_file.empty()) return socket.status();
      return Status(socket.status().code(),
                    fmt::format("{}, where the session file {} says it is: if that agent is gone, remove the file",
                                socket.status().message(), core->info_.session_file));
    }
    core->channel_ = FrameChannel(*std::move(socket));
    const Status s = core->handshake(options, transport, token, deadline);
    if (s) {
      if (!refused) core->info_.transports += fmt::format(" (instead: {})", refused.message());
      return core;
    }
    if (!refused)
      return no_session(at, token, {s.code(), fmt::format("{}; then over tcp: {}", refused.message(), s.message())});
    const bool other = transport == Transport::kAuto && core->chosen_ != Transport::kAuto &&
                       core->chosen_ != Transport::kTcp && s.code() == StatusCode::kUnsupported;
    if (!other) return no_session(at, token, s);
    refused = s;
    auto again = std::unique_ptr<SessionCore>(new SessionCore);
    again->embedded_ = std::move(core->embedded_);
    again->info_.session_file = core->info_.session_file;
    core = std::move(again);
  }
}

Status SessionCore::find_agent(const SessionOptions& options, const Deadline& deadline, HostPort& at,
                               std::string& token) {
  std::string where = options.agent;
  std::string why_embedded;
  if (where == "auto") {
    const char* named = std::getenv("WHERRY_AGENT");
    if (named != nullptr && *named != 0) {
      where = named;
    } else {
      where = default_session_file();
      const Status running = read_session_file(where).status();
      // Only where no agent runs is one started: readers look for the data of a running one there.
      if (running.code() == StatusCode::kNotFound || running.code() == StatusCode::kUnavailable) {
        where = "embedded";
        why_embedded = running.message();
      } else if (!running.is_ok()) {
        return {running.code(),
                fmt::format("{} ($WHERRY_AGENT=embedded starts an agent of this program's own)", running.message())};
      }
    }
  }
  token = options.token;
  if (where == "embedded") {
    auto process = fabric::EmbeddedProcess::start(options.embedded, options.transport, deadline);
    if (!process) {
      if (why_embedded.empty()) return process.status();
      return {process.status().code(),
              fmt::format("{}; none could be started either: {}", why_embedded, process.status().message())};
    }
    embedded_ = *std::move(process);
    where = embedded_.session_file();
  } else if (where.find('/') == std::string::npos) {
    if (auto parsed = parse_host_port(where)) {
      at = *parsed;
      return Status::ok();
    }
  }
  auto file = read_session_file(where);
  if (!file) {
    if (file.status().code() != StatusCode::kNotFound || where.find('/') != std::string::npos) return file.status();
    return {
        StatusCode::kNotFound,
        fmt::format("no agent '{}': want auto, embedded, host:port, or the path of an agent's session file", where)};
  }
  info_.session_file = where;
  at = {file->host, file->port};
  if (token.empty()) token = file->token;
  return Status::ok();
}

Status SessionCore::expect(ControlFrame& frame, ControlType type) {
  if (frame.type == static_cast<std::uint16_t>(type)) return Status::ok();
  if (frame.type == static_cast<std::uint16_t>(ControlType::kFailure)) {
    auto failure = fabric::decode_failure(frame.payload);
    return failure ? Status(failure->code, failure->message) : failure.status();
  }
  return {StatusCode::kProtocol, "the agent answered out of turn"};
}

Status SessionCore::handshake(const SessionOptions& options, Transport transport, const std::string& token,
                              const Deadline& deadline) {
  fabric::Hello hello;
  hello.token = token;
  hello.host = host_identity();
  hello.name = options.name.empty() ? program_name() : options.name;
  hello.pid = static_cast<std::uint32_t>(getpid());
  hello.transport = transport;
  if (Status s = channel_.send(static_cast<std::uint16_t>(ControlType::kHello), encode(hello), deadline); !s) return s;
  auto frame = channel_.receive(deadline);
  if (!frame) return frame.status();
  if (Status s = expect(*frame, ControlType::kGreeting); !s) return s;
  auto greeting = fabric::decode_greeting(frame->payload);
  if (!greeting) return greeting.status();
  if (options.max_tickets > greeting->max_tickets) {
    return {StatusCode::kInvalidArgument,
            fmt::format("max_tickets = {}: the agent allows {}", options.max_tickets, greeting->max_tickets)};
  }
  session_ = greeting->session;
  chosen_ = greeting->transport;
  info_.agent_version = greeting->agent_version;
  info_.agent_pid = static_cast<int>(greeting->pid);
  info_.flight_uri = greeting->flight_uri;

  auto context = fabric::Context::create(chosen_, interface_of(channel_.fd()));
  if (!context) return context.status();
  context_ = *std::move(context);
  auto worker = fabric::Worker::create(context_);
  if (!worker) return worker.status();
  worker_ = *std::move(worker);
  auto endpoint = fabric::Endpoint::connect(*worker_, greeting->worker_address);
  if (!endpoint) return endpoint.status();
  endpoint_ = *std::move(endpoint);

  auto completions = context_->allocate(options.max_tickets * sizeof(fabric::CompletionRecord));
  if (!completions) return completions.status();
  completions_ = *std::move(completions);
  records_ = reinterpret_cast<fabric::CompletionRecord*>(completions_.data());
  mask_ = options.max_tickets - 1;
  slots_.resize(options.max_tickets);
  for (Slot& slot : slots_) slot.regions.reserve(kBuffersAtHand);  // so that no offload of ordinary size allocates

  // The two kinds of memory that users have. The heap probe must be ordinary memory: that is the point of it.
  constexpr std::size_t kProbeBytes = fabric::kProbeWords * sizeof(std::uint64_t);
  std::vector<std::uint64_t> heap(fabric::kProbeWords);
  auto heap_probe = context_->register_memory(heap.data(), kProbeBytes);
  if (!heap_probe) return heap_probe.status();
  auto alloc_probe = context_->allocate(kProbeBytes);
  if (!alloc_probe) return alloc_probe.status();
  if (Status s = fill_probe(*heap_probe, session_); !s) return s;
  if (Status s = fill_probe(*alloc_probe, session_); !s) return s;
  fabric::Attach attach;
  attach.worker_address = worker_->address();
  auto completions_key = key_of(completions_);
  auto heap_key = key_of(*heap_probe);
  auto alloc_key = key_of(*alloc_probe);
  if (!completions_key) return completions_key.status();
  if (!heap_key) return heap_key.status();
  if (!alloc_key) return alloc_key.status();
  attach.completions = *std::move(completions_key);
  attach.heap_probe = *std::move(heap_key);
  attach.alloc_probe = *std::move(alloc_key);
  if (greeting->transport == Transport::kShm) {
    auto mailbox = context_->allocate(fabric::Mailbox::bytes_for(kMailboxBytes));
    if (!mailbox) return mailbox.status();
    mailbox_memory_ = *std::move(mailbox);
    auto mailbox_key = key_of(mailbox_memory_);
    if (!mailbox_key) return mailbox_key.status();
    attach.mailbox = *std::move(mailbox_key);
  }
  if (Status s = channel_.send(static_cast<std::uint16_t>(ControlType::kAttach), encode(attach), deadline); !s)
    return s;

  // Both directions come up: our ping, then the agent's put. Progress on both sides until the agent says so.
  const ByteView ping = std::as_bytes(std::span(&session_, 1));
  if (Status s = endpoint_.send(fabric::kPingMessage, ping, wired_); !s) return s;
  for (;;) {
    worker_->progress();
    auto next = channel_.try_receive();
    if (!next) return next.status();
    if (next->has_value()) {
      if (Status s = expect(**next, ControlType::kAttached); !s) return s;
      break;
    }
    if (deadline.passed()) return no_fabric(greeting->transport);
    cpu_relax();
  }
  // Until UCX has finished wiring up, a message waits for progress calls, which an application that only looks at
  // ready() never makes: flush, so that the first offload leaves at once.
  if (Status s = endpoint_.flush(wired_); !s) return s;
  while (wired_.pending() != 0) {
    worker_->progress();
    if (deadline.passed()) return no_fabric(greeting->transport);
  }

  // Now sleep in recv and make no progress: gets that complete are one-sided.
  if (Status s = channel_.send(static_cast<std::uint16_t>(ControlType::kAsleep), {}, deadline); !s) return s;
  auto verdict_frame = channel_.receive(deadline);
  if (!verdict_frame) return verdict_frame.status();
  if (Status s = expect(*verdict_frame, ControlType::kVerdict); !s) return s;
  auto verdict = fabric::decode_verdict(verdict_frame->payload);
  if (!verdict) return verdict.status();
  info_.transports = verdict->transports;
  info_.heap = verdict->heap;
  info_.allocated = verdict->allocated;
  info_.mapped = verdict->mapped != 0;
  if (verdict->mailbox != 0 && mailbox_memory_) {
    mailbox_ = fabric::MailboxWriter({mailbox_memory_.data(), mailbox_memory_.size()});
  }
  if (info_.heap == Verdict::kEmulated || info_.allocated == Verdict::kEmulated) {
    start_progress_thread();
  }
  // A round trip through the agent: it has left the probe behind, whose memory goes now.
  auto hello_again = request("status", {});
  const FabricLock lock(fabric_mutex_, shared());  // a progress thread runs already
  *heap_probe = fabric::Region();
  *alloc_probe = fabric::Region();
  return hello_again ? Status::ok() : hello_again.status();
}

void SessionCore::start_progress_thread() {
  threaded_ = true;
  progress_thread_ = std::thread([this] {
    name_thread("wherry-progress");
    while (!stop_.load(std::memory_order_relaxed)) {
      unsigned events = 0;
      {
        const std::lock_guard lock(fabric_mutex_);
        for (int i = 0; i < 16; ++i) events += worker_->progress();
        if (unsent_.load(std::memory_order_relaxed) != 0) note_unsent();
      }
      if (events == 0) std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
}

SessionCore::~SessionCore() {
  if (worker_) (void)drain(std::chrono::seconds(2));
  stop_.store(true);
  if (progress_thread_.joinable()) progress_thread_.join();
  // Sends that a dead agent never took report when the worker goes: that must be before the slots that they refer to.
  endpoint_ = fabric::Endpoint();
  worker_.reset();
}

}  // namespace wherry::detail
