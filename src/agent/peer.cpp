// SPDX-License-Identifier: Apache-2.0
#include "agent/peer.hpp"

#include <atomic>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace wherry {

using fabric::CompletionRecord;

namespace {
constexpr std::size_t kProbeBytes = fabric::kProbeWords * sizeof(std::uint64_t);
}

Status AgentPeer::attach(fabric::Attach message) {
  attach_ = std::move(message);
  max_tickets_ = static_cast<std::uint32_t>(attach_.completions.size / sizeof(CompletionRecord));
  auto endpoint = fabric::Endpoint::connect(*plane->worker, attach_.worker_address);
  if (!endpoint) return endpoint.status();
  endpoint_ = *std::move(endpoint);
  const auto unpack = [&](const fabric::RemoteKey& key, fabric::RemoteRegion& region) -> Status {
    auto remote = endpoint_.unpack(key.key, key.base, key.size);
    if (!remote) return remote.status();
    region = *std::move(remote);
    return Status::ok();
  };
  if (Status s = unpack(attach_.completions, completions_); !s) return s;
  if (state == State::kReady) return Status::ok();  // a new connection: the probes are history, their memory is gone
  if (attach_.mailbox.size != 0) {
    if (Status s = unpack(attach_.mailbox, mailbox_region_); !s) return s;
  }
  if (Status s = unpack(attach_.heap_probe, heap_probe_); !s) return s;
  return unpack(attach_.alloc_probe, alloc_probe_);
}

AgentPeer::~AgentPeer() {
  // What is in flight reports before its buffers go; what does not, keeps them.
  const Deadline patience(std::chrono::seconds(1));
  while (plane != nullptr && (!puts_.empty() || probe_pending()) && !patience.passed()) {
    plane->worker->progress();
    reap();
  }
  endpoint_ = fabric::Endpoint();
  for (auto& put : puts_) {
    if (put->done.pending() != 0) (void)put.release();
  }
}

Status AgentPeer::post_wireup() {
  if (wireup_posted_) return Status::ok();
  wireup_posted_ = true;
  // The last word of the first record: reserved, read by nobody.
  const std::uint64_t at = completions_.base() + sizeof(CompletionRecord) - sizeof wireup_word_;
  if (Status s = endpoint_.put(reinterpret_cast<const std::byte*>(&wireup_word_), completions_, at, sizeof wireup_word_,
                               wireup_);
      !s)
    return s;
  return endpoint_.flush(wireup_);
}

Status AgentPeer::post_probe(std::byte* scratch) {
  std::memset(scratch, 0, 2 * kProbeBytes);
  if (Status s = endpoint_.get(scratch, plane->arena, heap_probe_, heap_probe_.base(), kProbeBytes, heap_done_); !s)
    return s;
  return endpoint_.get(scratch + kProbeBytes, plane->arena, alloc_probe_, alloc_probe_.base(), kProbeBytes,
                       alloc_done_);
}

bool AgentPeer::probe_done(bool late, std::byte* scratch, fabric::VerdictMessage& verdict) {
  if (probe_pending() && !late) return false;
  const auto holds_pattern = [&](const std::byte* bytes) {
    for (std::uint64_t i = 0; i < fabric::kProbeWords; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + i * sizeof word, sizeof word);
      if (word != fabric::probe_word(session, i)) return false;
    }
    return true;
  };
  const auto judge = [&](const fabric::Completion& done, const std::byte* bytes) {
    const bool arrived = done.pending() == 0 && done.error() == nullptr;
    return arrived && holds_pattern(bytes) ? Verdict::kOneSided : Verdict::kEmulated;
  };
  verdict.heap = judge(heap_done_, scratch);
  verdict.allocated = judge(alloc_done_, scratch + kProbeBytes);
  verdict.mapped = alloc_probe_.mapped(alloc_probe_.base()) != nullptr ? 1 : 0;
  verdict.transports = endpoint_.transports();
  std::byte* const mailbox = mailbox_region_.mapped(mailbox_region_.base());
  if (verdict.mapped != 0 && verdict.allocated == Verdict::kOneSided && mailbox != nullptr &&
      reinterpret_cast<std::uintptr_t>(mailbox) % 64 == 0) {
    mailbox_ = fabric::MailboxReader({mailbox, attach_.mailbox.size});
    verdict.mailbox = 1;
  }
  if (plane->context->transport() == Transport::kShm && verdict.heap == Verdict::kOneSided) {
    // The same memory again, without UCX: only what the pattern proves is used.
    std::memset(scratch, 0, kProbeBytes);
    reader_.emplace(static_cast<pid_t>(hello.pid));
    (void)reader_->add(scratch, heap_probe_.base(), kProbeBytes);
    if (reader_->read() && holds_pattern(scratch)) {
      verdict.transports += " cma/vectored";
    } else {
      reader_.reset();
    }
  }
  return true;
}

void AgentPeer::complete(std::uint64_t ticket, StatusCode code, const CompletionRecord& fields) {
  const std::uint64_t index = ticket % max_tickets_;
  const std::uint64_t word = ticket << 8 | static_cast<std::uint64_t>(code);
  const std::uint64_t at = completions_.base() + index * sizeof(CompletionRecord);
  if (std::byte* mapped = completions_.mapped(at)) {
    auto* record = reinterpret_cast<CompletionRecord*>(mapped);
    record->transfer_ns = fields.transfer_ns;
    record->sequence = fields.sequence;
    record->detail = fields.detail;
    std::atomic_ref(record->word).store(word, std::memory_order_release);
    return;
  }
  if (!endpoint_ || completions_.handle() == nullptr) return;  // the client is gone
  puts_.push_back(std::make_unique<PutOp>());
  PutOp& put = *puts_.back();
  put.record = fields;
  put.record.word = word;
  const auto* bytes = reinterpret_cast<const std::byte*>(&put.record);
  constexpr std::size_t kWord = sizeof put.record.word;
  Status s = endpoint_.put(bytes + kWord, completions_, at + kWord, 3 * kWord, put.done);
  if (s) s = plane->worker->fence();
  if (s) s = endpoint_.put(bytes, completions_, at, kWord, put.done);
  if (!s) spdlog::warn("{} (pid {}): cannot complete ticket {}: {}", name(), pid(), ticket, s.message());
}

void AgentPeer::reap() {
  while (!puts_.empty() && puts_.front()->done.pending() == 0) puts_.pop_front();
}

bool AgentPeer::reconnect() {
  fabric::Attach again = std::move(attach_);
  completions_ = {};
  heap_probe_ = {};
  alloc_probe_ = {};
  endpoint_ = fabric::Endpoint();
  ++epoch_;
  if (Status s = attach(std::move(again)); !s) {
    spdlog::warn("{} (pid {}): cannot connect again: {}", name(), pid(), s.message());
    return false;
  }
  return true;
}

}  // namespace wherry
