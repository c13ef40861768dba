// SPDX-License-Identifier: Apache-2.0
#include "bypass/card.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/try.hpp"
#include "bypass/generated/registers.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;
namespace reg = registers;

constexpr auto kIdleLimit = 100ms;  // what is under way are reads of the NIC: it has a completion timeout of 50 ms
constexpr std::uint32_t kFcs = 4;
/// Slots of frames in place between write-back and the NIC's last read: 3.4 us (13 frames) at 10 Gbit/s and 300 bytes.
constexpr std::uint32_t kHeldInPlace = 16;

struct NamedCounter {
  std::string_view name;
  std::uint32_t offset;
};
constexpr std::array kCounters{
    NamedCounter{"rx_in", reg::kRxInOffset},
    NamedCounter{"rx_frames", reg::kRxFramesOffset},
    NamedCounter{"rx_bytes", reg::kRxBytesOffset},
    NamedCounter{"rx_error", reg::kRxErrorOffset},
    NamedCounter{"rx_size", reg::kRxSizeOffset},
    NamedCounter{"rx_stopped", reg::kRxStoppedOffset},
    NamedCounter{"rx_unexpected", reg::kRxUnexpectedOffset},
    NamedCounter{"rx_stray", reg::kRxStrayOffset},
    NamedCounter{"tx_in", reg::kTxInOffset},
    NamedCounter{"tx_posted", reg::kTxPostedOffset},
    NamedCounter{"tx_bytes", reg::kTxBytesOffset},
    NamedCounter{"tx_done", reg::kTxDoneOffset},
    NamedCounter{"tx_stopped", reg::kTxStoppedOffset},
    NamedCounter{"tx_refused", reg::kTxRefusedOffset},
    NamedCounter{"tx_size", reg::kTxSizeOffset},
    NamedCounter{"tx_late", reg::kTxLateOffset},
    NamedCounter{"verdicts_drop", reg::kVerdictsDropOffset},
    NamedCounter{"tails", reg::kTailsOffset},
    NamedCounter{"tail_errors", reg::kTailErrorsOffset},
    NamedCounter{"fetches", reg::kFetchesOffset},
    NamedCounter{"tx_written_back", reg::kTxWrittenBackOffset},
    NamedCounter{"tx_unexpected", reg::kTxUnexpectedOffset},
    NamedCounter{"outside_writes", reg::kOutsideWritesOffset},
    NamedCounter{"outside_reads", reg::kOutsideReadsOffset},
};

}  // namespace

Result<std::uint32_t> descriptor_word(const Personality& nic) {
  const auto unsupported = [&](std::string_view what) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("the card does not know the descriptors of {}: {}", nic.name, what));
  };
  std::uint32_t word = 0;
  word = reg::kDescriptorsRx32Bytes.set(word, nic.rx_descriptor_bytes == 32 ? 1 : 0);
  switch (nic.rx_length_low) {
    case 96:
      break;
    case 102:
      word = reg::kDescriptorsRxLength.set(word, 1);
      break;
    case 32:
      word = reg::kDescriptorsRxLength.set(word, 2);
      break;
    default:
      return unsupported("the length of a received frame");
  }
  if (nic.rx_done_bit != 64 || nic.rx_eop_bit != 65) return unsupported("DD and EOP");
  if (nic.tx_length_low != 64 && nic.tx_length_low != 98) return unsupported("the length of a buffer");
  word = reg::kDescriptorsTxLength34.set(word, nic.tx_length_low == 98 ? 1 : 0);
  if (nic.tx_total_bits != 0 && nic.tx_total_low != 110) return unsupported("the length of a frame");
  word = reg::kDescriptorsTxTotal46.set(word, nic.tx_total_bits != 0 ? 1 : 0);
  word = reg::kDescriptorsTxDoneType.set(word, nic.tx_done_mask == 0xF ? 1 : 0);
  word = reg::kDescriptorsTxReport5.set(word, nic.tx_rs_mask == 1U << 5 ? 1 : 0);
  return word;
}

Result<Card> Card::open(CardAccess& access) {
  Card card(access);
  if (const std::uint32_t id = access.read(reg::kIdOffset); id != reg::kIdReset)
    return Status(
        StatusCode::kNotFound,
        fmt::format("the card is not a bypass core: its register 0 reads {:#010x}, want {:#010x}", id, reg::kIdReset));
  const std::uint32_t version = access.read(reg::kCoreVersionOffset), shape = access.read(reg::kCapabilityOffset);
  const auto major = static_cast<std::uint16_t>(reg::kCoreVersionMajor.get(version));
  if (major != reg::kCoreVersionMajor.get(reg::kCoreVersionReset))
    return Status(
        StatusCode::kVersionMismatch,
        fmt::format("the card's register map has version {}, this program knows {}: load a bitstream of this release",
                    major, reg::kCoreVersionMajor.get(reg::kCoreVersionReset)));
  card.shape_ = {.queue_pairs = 1U << reg::kCapabilityQueueBits.get(shape),
                 .rx_entries = 1U << reg::kCapabilityRxRingBits.get(shape),
                 .tx_entries = 1U << reg::kCapabilityTxRingBits.get(shape),
                 .version_major = major,
                 .version_minor = static_cast<std::uint16_t>(reg::kCoreVersionMinor.get(version))};
  return card;
}

Status Card::configure(const Personality& nic, const CardSetup& setup) {
  if (setup.window % kWindowBytes != 0)
    return {StatusCode::kInvalidArgument,
            fmt::format("the card's window is at {:#x}: want a multiple of 8 MiB", setup.window)};
  if (setup.pairs < 1 || setup.pairs > shape_.queue_pairs)
    return {StatusCode::kInvalidArgument,
            fmt::format("{} queue pairs: want 1 to {}, which the card has", setup.pairs, shape_.queue_pairs)};
  if (setup.mailbox % kMailboxBytes != 0)
    return {StatusCode::kInvalidArgument,
            fmt::format("rings in the host's memory: the mailbox is at {:#x}: want a multiple of {}", setup.mailbox,
                        kMailboxBytes)};
  for (const auto& [entries, multiple] :
       {std::pair{shape_.rx_entries, nic.rx_ring_multiple}, std::pair{shape_.tx_entries, nic.tx_ring_multiple}})
    if (entries < nic.ring_min || entries > nic.ring_max || entries % multiple != 0)
      return {StatusCode::kInvalidArgument, fmt::format("the card has rings of {} descriptors, {} takes {} to {}",
                                                        entries, nic.name, nic.ring_min, nic.ring_max)};
  WHERRY_ASSIGN(const std::uint32_t descriptors, descriptor_word(nic));
  WHERRY_TRY(stop());
  const auto write64 = [&](std::uint32_t low, std::uint32_t high, std::uint64_t value) {
    access_->write(low, static_cast<std::uint32_t>(value));
    access_->write(high, static_cast<std::uint32_t>(value >> 32));
  };
  write64(reg::kBaseLowOffset, reg::kBaseHighOffset, setup.window);
  access_->write(reg::kDescriptorsOffset, descriptors);
  access_->write(reg::kRxErrorMaskOffset, nic.rx_error_mask);
  write64(reg::kTxWordLowOffset, reg::kTxWordHighOffset, nic.tx_data_word | nic.tx_eop_mask);
  std::uint32_t doorbells = access_->read(reg::kDoorbellsOffset);
  doorbells = reg::kDoorbellsRxCredits.set(doorbells, nic.doorbell_credits);
  doorbells = reg::kDoorbellsTxCredits.set(doorbells, nic.doorbell_credits);
  doorbells = reg::kDoorbellsRxAlign.set(doorbells, static_cast<std::uint32_t>(std::countr_zero(nic.rx_tail_granule)));
  access_->write(reg::kDoorbellsOffset, doorbells);
  access_->write(reg::kTxLimitOffset, shape_.tx_entries - 1 - nic.tx_ahead_guard);
  const std::uint32_t away = nic.rx_cache + (setup.in_place ? kHeldInPlace : 0);
  access_->write(reg::kRxLimitOffset,
                 setup.through_root ? std::min(away, shape_.rx_entries - 1) : std::uint32_t{reg::kRxLimitReset});
  // Reading all bytes of a frame marks it as taken. If RS may not stay clear forever, set it in every n-th descriptor.
  std::uint32_t completion = 0;
  if (setup.repeats_reads || setup.mailbox != 0) {
    completion = reg::kCompletionReport.set(reg::kCompletionWrittenBack.set(completion, 1), 1);
  } else if (nic.tx_rs_interval != 0) {
    completion = reg::kCompletionReport.set(completion, 1);
    completion =
        reg::kCompletionReportBits.set(completion, static_cast<std::uint32_t>(std::bit_width(nic.tx_rs_interval) - 1));
  }
  access_->write(reg::kCompletionOffset, completion);
  access_->write(reg::kMaxFrameOffset, setup.frame_bytes - kFcs);
  for (std::uint32_t pair = 0; pair < setup.pairs; ++pair) {
    std::uint64_t rx = setup.nic + nic.rx_tail_offset + std::uint64_t{nic.rx_tail_stride} * pair;
    std::uint64_t tx = setup.nic + nic.tx_tail_offset + std::uint64_t{nic.tx_tail_stride} * pair;
    if (setup.mailbox != 0) {
      rx = setup.mailbox + std::uint64_t{kMailboxBytes} * pair + kRxMail;
      tx = setup.mailbox + std::uint64_t{kMailboxBytes} * pair + kTxMail;
    }
    write64(reg::rx_tail_low_offset(pair), reg::rx_tail_high_offset(pair), rx);
    write64(reg::tx_tail_low_offset(pair), reg::tx_tail_high_offset(pair), tx);
  }
  access_->write(reg::kControlOffset, reg::kControlClearCounters.set(0, 1));
  if (const std::uint32_t back = access_->read(reg::kDescriptorsOffset); back != descriptors)
    return {StatusCode::kUnavailable,
            fmt::format("the card does not take its registers: wrote {:#x}, reads {:#x}", descriptors, back)};
  in_place_ = setup.in_place;
  pairs_ = setup.pairs;
  return {};
}

Status Card::start() {
  std::uint32_t control = reg::kQueueControlEnable.set(0, 1);
  control = reg::kQueueControlInPlace.set(control, in_place_ ? 1 : 0);
  // In-place mode may change only while the pair is idle, so it is written before the write that starts the pair.
  for (std::uint32_t pair = 0; pair < pairs_; ++pair) {
    access_->write(reg::queue_control_offset(pair), reg::kQueueControlEnable.set(control, 0));
    access_->write(reg::queue_control_offset(pair), control);
  }
  for (std::uint32_t pair = 0; pair < pairs_; ++pair) {
    for (auto waited = 0us; !running(pair); waited += 100us) {
      if (waited >= kIdleLimit)
        return {StatusCode::kUnavailable, fmt::format("the card's queue pair {} does not start", pair)};
      access_->pause(100us);
    }
  }
  return {};
}

/// Stops all pairs, including those that another process has started. In-place mode is not changed, because that is
/// allowed only while a pair is idle.
Status Card::stop() {
  for (std::uint32_t pair = 0; pair < shape_.queue_pairs; ++pair) {
    const std::uint32_t in_place = reg::kQueueControlInPlace.get(access_->read(reg::queue_control_offset(pair)));
    access_->write(reg::queue_control_offset(pair), reg::kQueueControlInPlace.set(0, in_place));
  }
  for (std::uint32_t pair = 0; pair < shape_.queue_pairs; ++pair) {
    for (auto waited = 0us;; waited += 100us) {
      const std::uint32_t state = access_->read(reg::queue_state_offset(pair));
      if (state == ~std::uint32_t{0}) return {StatusCode::kUnavailable, "the card does not answer"};
      if (reg::kQueueStateRunning.get(state) == 0 && reg::kQueueStateIdle.get(state) == 1) break;
      if (waited >= kIdleLimit)
        return {StatusCode::kDeadlineExceeded, fmt::format("the card's queue pair {} does not come to rest", pair)};
      access_->pause(100us);
    }
  }
  return {};
}

bool Card::running(std::uint32_t pair) const {
  const std::uint32_t state = access_->read(reg::queue_state_offset(pair));
  return state != ~std::uint32_t{0} && reg::kQueueStateRunning.get(state) == 1;
}

bool Card::running() const {
  for (std::uint32_t pair = 0; pair < shape_.queue_pairs; ++pair)
    if (running(pair)) return true;
  return false;
}

Result<std::vector<Counter>> Card::counters() const {
  if (access_->read(reg::kIdOffset) != reg::kIdReset)
    return Status(StatusCode::kUnavailable, "the card does not answer: it was removed, or is being programmed");
  std::vector<Counter> counters;
  for (const NamedCounter& one : kCounters) counters.push_back({one.name, access_->read(one.offset)});
  return counters;
}

}  // namespace wherry::bypass
