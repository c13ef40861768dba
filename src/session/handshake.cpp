// SPDX-License-Identifier: Apache-2.0
// The handshake: authenticate, connect, and sleep while the agent proves that its gets are one-sided.
#include <fmt/core.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/cpu.hpp"
#include "base/guarded.hpp"
#include "base/try.hpp"
#include "base/version.hpp"
#include "fabric/stream_worker.hpp"
#include "session/connection.hpp"

namespace wherry::session {

namespace {

/// Room for a few hundred messages of ordinary size, such as offloads of 16 columns.
constexpr std::size_t kMailboxBytes = std::size_t{256} << 10;

std::string program_name() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).filename().string();
}

Status no_fabric(Transport transport) {
  return {
      StatusCode::kDeadlineExceeded,
      fmt::format("no connection over transport '{}' within SessionOptions::connect_timeout", to_string(transport))};
}

void fill_probe(const fabric::Region& region, std::uint64_t session) {
  for (std::uint64_t i = 0; i < kProbeWords; ++i) {
    const std::uint64_t word = probe_word(session, i);
    std::memcpy(region.data() + i * sizeof word, &word, sizeof word);
  }
}

Result<fabric::RemoteKey> key_of(const fabric::Region& region) {
  fabric::RemoteKey key;
  key.base = reinterpret_cast<std::uint64_t>(region.data());
  key.size = region.size();
  WHERRY_TRY(region.pack_key(key.key));
  return key;
}

}  // namespace

Status Connection::expect(ControlFrame& frame, ControlType type) {
  if (frame.type == static_cast<std::uint16_t>(type)) return ok_status();
  if (frame.type == static_cast<std::uint16_t>(ControlType::kFailure)) {
    auto failure = decode_failure(frame.payload);
    return failure ? Status(failure->code, failure->message) : failure.status();
  }
  return {StatusCode::kProtocol, "the agent answered out of turn"};
}

/// Creates context, worker and endpoint for the transport that the agent chose.
Status Connection::wire_up(const Greeting& greeting, const Ends& ends, const Deadline& deadline) {
  WHERRY_ASSIGN(context_, fabric::Context::create(chosen_));
  WHERRY_ASSIGN(worker_, fabric::Worker::create(context_));
  if (chosen_ != Transport::kTcp) {
    WHERRY_ASSIGN(endpoint_, fabric::Endpoint::connect(*worker_, greeting.worker_address));
    return ok_status();
  }
  auto stream =
      connect(ends, fabric::Purpose::kData, greeting.link, fabric::derive(ends.token, "data", session_), deadline);
  if (!stream) return {stream.status().code(), fmt::format("the data connection: {}", stream.status().message())};
  // The agent may read only memory that this session registers, and write only the completion records (below).
  worker_->stream()->offer_memory(true);
  endpoint_ = fabric::Endpoint::over(*worker_, *std::move(stream));
  return ok_status();
}

Status Connection::handshake(const SessionOptions& options, Transport transport, const Ends& ends,
                             const Deadline& deadline) {
  Hello hello;
  hello.host = host_identity();
  hello.name = options.name.empty() ? program_name() : options.name;
  hello.pid = static_cast<std::uint32_t>(getpid());
  hello.transport = transport;
  WHERRY_TRY(channel_.send(static_cast<std::uint16_t>(ControlType::kHello), encode(hello), deadline));
  WHERRY_ASSIGN(ControlFrame frame, channel_.receive(deadline));
  WHERRY_TRY(expect(frame, ControlType::kGreeting));
  WHERRY_ASSIGN(const Greeting greeting, decode_greeting(frame.payload));
  if (options.max_tickets > greeting.max_tickets) {
    return {StatusCode::kInvalidArgument,
            fmt::format("max_tickets = {}: the agent allows {}", options.max_tickets, greeting.max_tickets)};
  }
  session_ = greeting.session;
  chosen_ = greeting.transport;
  info_.agent_version = greeting.agent_version;
  info_.agent_pid = static_cast<int>(greeting.pid);
  info_.flight_uri = greeting.flight_uri;

  WHERRY_TRY(wire_up(greeting, ends, deadline));

  WHERRY_ASSIGN(completions_, context_->allocate(options.max_tickets * sizeof(CompletionRecord)));
  records_ = reinterpret_cast<CompletionRecord*>(completions_.data());
  mask_ = options.max_tickets - 1;
  if (worker_->stream() != nullptr)
    worker_->stream()->accept_puts(reinterpret_cast<std::uint64_t>(records_), completions_.size());

  // One probe for each kind of user memory. The heap probe must be ordinary memory, because it tests such memory.
  constexpr std::size_t kProbeBytes = kProbeWords * sizeof(std::uint64_t);
  std::vector<std::uint64_t> heap(kProbeWords);
  WHERRY_ASSIGN(fabric::Region heap_probe, context_->register_memory(heap.data(), kProbeBytes));
  WHERRY_ASSIGN(fabric::Region alloc_probe, context_->allocate(kProbeBytes));
  fill_probe(heap_probe, session_);
  fill_probe(alloc_probe, session_);
  Attach attach;
  attach.worker_address = worker_->address();
  WHERRY_ASSIGN(attach.completions, key_of(completions_));
  WHERRY_ASSIGN(attach.heap_probe, key_of(heap_probe));
  WHERRY_ASSIGN(attach.alloc_probe, key_of(alloc_probe));
  if (greeting.transport == Transport::kShm) {
    WHERRY_ASSIGN(mailbox_memory_, context_->allocate(fabric::Mailbox::bytes_for(kMailboxBytes)));
    WHERRY_ASSIGN(attach.mailbox, key_of(mailbox_memory_));
  }
  WHERRY_TRY(channel_.send(static_cast<std::uint16_t>(ControlType::kAttach), encode(attach), deadline));

  // Sets up both directions: this side's ping, then the agent's put. Make progress until the agent confirms.
  const ByteView ping = std::as_bytes(std::span(&session_, 1));
  WHERRY_TRY(endpoint_.send(kPingMessage, ping, wired_));
  for (;;) {
    worker_->progress();
    WHERRY_ASSIGN(auto next, channel_.try_receive());
    if (next) {
      WHERRY_TRY(expect(*next, ControlType::kAttached));
      break;
    }
    if (deadline.passed()) return no_fabric(greeting.transport);
    cpu_relax();
  }
  // Until UCX has finished its wire-up, a message waits for progress calls, which an application that only calls
  // ready() never makes. So flush here: then the first offload leaves at once.
  WHERRY_TRY(endpoint_.flush(wired_));
  while (wired_.pending() != 0) {
    worker_->progress();
    if (deadline.passed()) return no_fabric(greeting.transport);
  }

  // Now sleep in recv and make no progress. A get that completes in this time is one-sided.
  WHERRY_TRY(channel_.send(static_cast<std::uint16_t>(ControlType::kAsleep), {}, deadline));
  WHERRY_ASSIGN(auto verdict_frame, channel_.receive(deadline));
  WHERRY_TRY(expect(verdict_frame, ControlType::kVerdict));
  WHERRY_ASSIGN(auto verdict, decode_verdict(verdict_frame.payload));
  info_.transports = verdict.transports;
  info_.heap = verdict.heap;
  info_.allocated = verdict.allocated;
  info_.mapped = verdict.mapped != 0;
  if (verdict.mailbox != 0 && mailbox_memory_) {
    mailbox_ = fabric::MailboxWriter({mailbox_memory_.data(), mailbox_memory_.size()});
  }
  if (info_.heap == Verdict::kEmulated || info_.allocated == Verdict::kEmulated) {
    start_progress_thread();
  }
  // After a round trip the agent has finished the probe, so the probe's memory can be freed now. The answer may be a
  // refusal.
  Status answered = guarded([&] { return ask({}, {}, {}).status(); });  // a progress thread serves the probes
  const FabricLock lock = lock_fabric();                                // a progress thread runs already
  heap_probe = fabric::Region();
  alloc_probe = fabric::Region();
  return answered;
}

}  // namespace wherry::session
