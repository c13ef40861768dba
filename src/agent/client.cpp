// SPDX-License-Identifier: Apache-2.0
#include "agent/client.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/clock.hpp"
#include "base/guarded.hpp"
#include "base/log.hpp"
#include "base/try.hpp"

namespace wherry {

using session::CompletionRecord;

namespace {

constexpr std::size_t kProbeBytes = session::kProbeWords * sizeof(std::uint64_t);
constexpr std::size_t kPutsInFlight = 64;
constexpr unsigned kPutAttempts = 8;  // connections that one outcome may outlive before its client counts as lost

bool holds_pattern(const std::byte* bytes, std::uint64_t session) {
  for (std::uint64_t i = 0; i < session::kProbeWords; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i * sizeof word, sizeof word);
    if (word != session::probe_word(session, i)) return false;
  }
  return true;
}

}  // namespace

Status AgentClient::attach(session::Attach message) {
  attach_ = std::move(message);
  max_tickets_ = static_cast<std::uint32_t>(attach_.completions.size / sizeof(CompletionRecord));
  if (plane->context->transport() == Transport::kTcp) {
    if (data == nullptr) return {StatusCode::kProtocol, "the client made no data connection"};
    endpoint_ = fabric::Endpoint::over(*plane->worker, std::move(data));
  } else {
    WHERRY_ASSIGN(endpoint_, fabric::Endpoint::connect(*plane->worker, attach_.worker_address));
  }
  const auto unpack = [&](const fabric::RemoteKey& key, fabric::RemoteRegion& region) -> Status {
    WHERRY_ASSIGN(region, endpoint_.unpack(key.key, key.base, key.size, static_cast<pid_t>(hello.pid)));
    return ok_status();
  };
  WHERRY_TRY(unpack(attach_.completions, completions_));
  if (state == State::kReady) return ok_status();  // a new connection: the probes are history, their memory is gone
  if (attach_.mailbox.size != 0) {
    WHERRY_TRY(unpack(attach_.mailbox, mailbox_region_));
  }
  WHERRY_TRY(unpack(attach_.heap_probe, heap_probe_));
  return unpack(attach_.alloc_probe, alloc_probe_);
}

AgentClient::~AgentClient() {
  // Wait until operations in flight have reported, then free their buffers. Buffers without a report are leaked.
  const auto in_flight = [this] {
    for (const auto& op : puts_) {
      if (op->done.pending() != 0) return true;
    }
    return probe_pending();
  };
  if (endpoint_.streams()) endpoint_ = fabric::Endpoint();  // nothing comes after that
  const Deadline patience(std::chrono::seconds(1));
  while (plane != nullptr && in_flight() && !patience.passed()) plane->worker->progress();
  endpoint_ = fabric::Endpoint();
  if (probe_pending()) (void)probe_.release();
  const auto keep_pending = [](auto& ops) {
    for (auto& op : ops) {
      if (op->done.pending() != 0) (void)op.release();
    }
  };
  keep_pending(puts_);
  keep_pending(lost_puts_);
}

Status AgentClient::post_wireup() {
  if (wireup_posted_) return ok_status();
  wireup_posted_ = true;
  // The last word of the first record is reserved; the client never reads it.
  const std::uint64_t at = completions_.base() + sizeof(CompletionRecord) - sizeof wireup_word_;
  WHERRY_TRY(
      endpoint_.put(reinterpret_cast<const std::byte*>(&wireup_word_), completions_, at, sizeof wireup_word_, wireup_));
  return endpoint_.flush(wireup_);
}

Status AgentClient::post_probe() {
  probe_ = std::make_unique<Probe>();
  WHERRY_ASSIGN(probe_->region, plane->context->register_memory(probe_->page.data(), probe_->page.size()));
  std::byte* const page = probe_->page.data();
  if (plane->context->transport() == Transport::kShm) {
    // Read without UCX first: UCX would only report "input/output error" and close the connection.
    reader_.emplace(static_cast<pid_t>(hello.pid));
    (void)reader_->add(page, heap_probe_.base(), kProbeBytes);
    if (Status s = reader_->read(); !s) {
      return {
          StatusCode::kUnsupported,
          fmt::format("transport 'shm': the agent (pid {}, user {}) cannot read the memory of {} (pid {}): {}. Both "
                      "must run as one user; /proc/sys/kernel/yama/ptrace_scope must be 0 or 1; a container must "
                      "allow process_vm_readv (Docker: --cap-add CAP_SYS_PTRACE). Or use transport 'tcp'",
                      getpid(), geteuid(), name(), pid(), s.message())};
    }
    if (!holds_pattern(page, session)) reader_.reset();  // another process's memory: only what is proved is used
    probe_->page.fill(std::byte{0});
  }
  WHERRY_TRY(endpoint_.get(page, probe_->region, heap_probe_, heap_probe_.base(), kProbeBytes, probe_->heap));
  return endpoint_.get(page + kProbeBytes, probe_->region, alloc_probe_, alloc_probe_.base(), kProbeBytes,
                       probe_->allocated);
}

Result<bool> AgentClient::probe_done(bool late) {
  for (const fabric::Completion* done : {&probe_->heap, &probe_->allocated}) {
    if (done->error() == nullptr) continue;
    return Status(StatusCode::kUnsupported,
                  fmt::format("transport '{}': the agent (pid {}) cannot read {} memory of {} (pid {}): {}",
                              to_string(plane->context->transport()), getpid(),
                              done == &probe_->heap ? "heap" : "allocated", name(), pid(), done->error()));
  }
  if (probe_pending() && !late) return false;
  const auto judge = [&](const fabric::Completion& done, const std::byte* bytes) {
    return done.pending() == 0 && holds_pattern(bytes, session) ? Verdict::kOneSided : Verdict::kEmulated;
  };
  verdict.heap = judge(probe_->heap, probe_->page.data());
  verdict.allocated = judge(probe_->allocated, probe_->page.data() + kProbeBytes);
  verdict.mapped = alloc_probe_.mapped(alloc_probe_.base()) != nullptr ? 1 : 0;
  verdict.transports = endpoint_.transports();
  std::byte* const mailbox = mailbox_region_.mapped(mailbox_region_.base());
  if (verdict.mapped != 0 && verdict.allocated == Verdict::kOneSided && mailbox != nullptr &&
      reinterpret_cast<std::uintptr_t>(mailbox) % 64 == 0) {
    mailbox_ = fabric::MailboxReader({mailbox, attach_.mailbox.size});
    verdict.mailbox = 1;
  }
  if (verdict.heap != Verdict::kOneSided) reader_.reset();
  if (reader_) verdict.transports += " cma/vectored";
  return true;
}

// ---------------------------------------------------------------- outcomes

/// If there is no memory for an outcome, the session ends; otherwise the client would wait for ever.
void AgentClient::complete(std::uint64_t ticket, StatusCode code, const CompletionRecord& fields) noexcept {
  const std::uint64_t index = ticket % max_tickets_;
  const std::uint64_t word = ticket << 8 | static_cast<std::uint64_t>(code);
  const std::uint64_t at = attach_.completions.base + index * sizeof(CompletionRecord);
  if (std::byte* mapped = completions_.mapped(at)) {
    auto* record = reinterpret_cast<CompletionRecord*>(mapped);
    record->transfer_ns = fields.transfer_ns;
    record->sequence = fields.sequence;
    record->detail = fields.detail;
    std::atomic_ref(record->word).store(word, std::memory_order_release);
    return;
  }
  if (!broken_) return;  // the session is about to end
  if (puts_.size() >= 2 * std::size_t{max_tickets_}) {
    if (!attempt([&] {
          broken_ = Status(StatusCode::kResourceExhausted, "the client asks for more than it takes answers for");
        }))
      broken_ = no_memory();
    return;
  }
  if (!attempt([&] { puts_.push_back(std::make_unique<PutOp>()); })) return fail(no_memory());
  PutOp& op = *puts_.back();
  op.record = fields;
  op.record.word = word;
  op.at = at;
  (void)push_puts();
}

/// Puts a part of the record. A put reports only that the data has left, so a flush reports its arrival.
Status AgentClient::put(PutOp& op, std::size_t from, std::size_t bytes) {
  const auto* record = reinterpret_cast<const std::byte*>(&op.record);
  Status s = endpoint_.put(record + from, completions_, op.at + from, bytes, op.done);
  return s && !endpoint_.streams() ? endpoint_.flush(op.done) : s;
}

bool AgentClient::push_puts() noexcept {
  if (put_failed_ || !endpoint_ || !completions_) return false;
  bool pushed = false;
  if (!attempt([&] { pushed = push_some(); })) fail(no_memory());
  while (!puts_.empty() && puts_.front()->step == PutOp::Step::kArrived) puts_.pop_front();
  return pushed;
}

bool AgentClient::push_some() {
  bool pushed = false;
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for (std::size_t i = 0; i < std::min(puts_.size(), kPutsInFlight) && !put_failed_; ++i) {
    PutOp& op = *puts_[i];
    put_failed_ = op.done.error() != nullptr;
    if (put_failed_ || op.done.pending() != 0) continue;
    Status s;
    switch (op.step) {
      case PutOp::Step::kQueued:
        ++op.attempts;
        if (endpoint_.streams()) {  // the client writes the word last by itself
          op.step = PutOp::Step::kWord;
          s = put(op, 0, 4 * kWord);
          break;
        }
        op.step = PutOp::Step::kFields;
        s = put(op, kWord, 3 * kWord);
        break;
      case PutOp::Step::kFields:
        op.step = PutOp::Step::kWord;
        s = put(op, 0, kWord);
        break;
      case PutOp::Step::kWord:
        op.step = PutOp::Step::kArrived;
        break;
      case PutOp::Step::kArrived:
        continue;
    }
    put_failed_ = !s;
    pushed = true;
  }
  return pushed;
}

Status AgentClient::tend() {
  (void)push_puts();
  if (put_failed_ || endpoint_.failed()) (void)reconnect();
  return broken_;
}

bool AgentClient::reconnect() {
  if (!broken_) return false;
  if (endpoint_.streams()) {
    // A failed get leaves the connection usable. A lost connection stays lost, because only clients connect.
    if (!endpoint_.failed()) return true;
    broken_ = Status(StatusCode::kUnavailable, fmt::format("its data connection: {}", endpoint_.status().message()));
    return false;
  }
  // Keep the old regions: UCX may use them while it closes the connection. Without an endpoint no put is posted.
  fabric::RemoteRegion old_completions;
  old_completions = std::move(completions_);
  heap_probe_ = {};
  alloc_probe_ = {};
  endpoint_ = fabric::Endpoint();
  ++epoch_;
  // Resend every outcome whose arrival was not confirmed. Writing an outcome twice does no harm.
  for (std::unique_ptr<PutOp>& op : puts_) {
    if (op->step == PutOp::Step::kQueued || op->step == PutOp::Step::kArrived) continue;
    if (op->attempts >= kPutAttempts) {
      broken_ = Status(StatusCode::kUnavailable,
                       fmt::format("the outcome of ticket {} cannot be delivered: {}", op->record.word >> 8,
                                   op->done.error() != nullptr ? op->done.error() : "no connection lasts"));
      return false;
    }
    auto again = std::make_unique<PutOp>();
    again->record = op->record;
    again->at = op->at;
    again->attempts = op->attempts;
    std::swap(op, again);
    if (again->done.pending() != 0) lost_puts_.push_back(std::move(again));
  }
  put_failed_ = false;
  if (Status s = attach(std::move(attach_)); !s) {
    spdlog::warn("{} (pid {}): cannot connect again: {}", name(), pid(), s.message());
    broken_ = s;
    return false;
  }
  (void)push_puts();
  return true;
}

}  // namespace wherry
