// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/preflight.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "base/random.hpp"
#include "base/try.hpp"
#include "bypass/descriptor.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

// Offsets in the slots of queue pair 0. The test uses four slots; the pair has at least sixteen.
constexpr std::uint32_t kEntries = 64;  // the shortest ring that all NICs take, of 16-byte descriptors
constexpr std::uint32_t kRxRing = kSlots, kTxRing = kRxRing + kSlotBytes, kSlotA = kTxRing + kSlotBytes,
                        kSlotB = kSlotA + kSlotBytes;
static_assert(kEntries * 32 <= kSlotBytes);         // the longest descriptors
constexpr std::uint32_t kLong = 1514, kShort = 60;  // without FCS
constexpr std::uint16_t kEtherType = 0x88B5;        // local experiments: IEEE 802
constexpr auto kStep = 200us;

using Frame = std::vector<std::byte>;

class Preflight {
 public:
  Preflight(Nic& nic, CardAccess& card, const PreflightOptions& options)
      : nic_(nic), card_(card), options_(options), random_(options.seed) {}

  PreflightReport run() {
    if (Status done = fly(); !done && report_.finding.cause == Cause::kNone)
      find(Cause::kLoopback, fmt::format("The pre-flight test ended early: {}.", done.message()), "");
    (void)nic_.reset();
    return std::move(report_);
  }

 private:
  void find(Cause cause, std::string what, std::string remedy) {
    report_.finding = {cause, std::move(what), std::move(remedy)};
  }

  Status fly() {
    WHERRY_TRY(check_memory());
    if (report_.finding.cause != Cause::kNone) return {};
    WHERRY_TRY(clear(kRxRing, kEntries * nic_.personality().rx_descriptor_bytes));
    WHERRY_TRY(clear(kTxRing, kEntries * nic_.personality().tx_descriptor_bytes));
    WHERRY_TRY(nic_.start({.rings = {.rx = options_.window + kRxRing,
                                     .tx = options_.window + kTxRing,
                                     .rx_entries = kEntries,
                                     .tx_entries = kEntries},
                           .slot_bytes = kSlotBytes,
                           .promiscuous = true,
                           .loopback = true}));
    (void)nic_.progress();  // clears its counters
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      WHERRY_TRY(pass(kSlotA, kSlotB, kLong, report_.there));
      if (report_.finding.cause != Cause::kNone) return {};
      WHERRY_TRY(pass(kSlotB, kSlotA, kShort, report_.back));
      if (report_.finding.cause != Cause::kNone) return {};
    }
    return {};
  }

  /// The host must read back what it writes, otherwise the tests below prove nothing.
  Status check_memory() {
    std::array<std::byte, 64> written{}, read{};
    fill(written);
    WHERRY_TRY(card_.write_window(kSlotA, written));
    WHERRY_TRY(card_.read_window(kSlotA, read));
    if (written != read)
      find(Cause::kCardMemory,
           fmt::format("The card's slots, at {:#x} of its window, do not hold what the host writes.", kSlotA),
           "Load the card's bitstream again.");
    return {};
  }

  void fill(std::span<std::byte> bytes) {
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_());
  }

  Status clear(std::uint32_t offset, std::uint32_t bytes) {
    return card_.write_window(offset, std::vector<std::byte>(bytes));
  }

  Frame make_frame(std::uint32_t bytes) {
    Frame frame(bytes);
    fill(frame);
    const MacAddress mac = nic_.mac();
    for (unsigned i = 0; i < 6; ++i) frame[i] = frame[6 + i] = static_cast<std::byte>(mac[i]);
    frame[12] = static_cast<std::byte>(kEtherType >> 8);
    frame[13] = static_cast<std::byte>(kEtherType & 0xFF);
    return frame;
  }

  static std::uint32_t rounded(std::uint32_t bytes) { return (bytes + 3) & ~3U; }

  Status write_descriptor(std::uint32_t ring, std::uint32_t index, std::uint32_t bytes, const Descriptor& descriptor) {
    std::array<std::byte, kDescriptorBytes> raw{};
    store(descriptor, raw);
    return card_.write_window(ring + index * bytes, raw);
  }
  Result<Descriptor> read_descriptor(std::uint32_t ring, std::uint32_t index, std::uint32_t bytes) {
    std::array<std::byte, kDescriptorBytes> raw{};
    WHERRY_TRY(card_.read_window(ring + index * bytes, raw));
    return load(raw);
  }

  /// Sends one frame through the NIC.
  Status pass(std::uint32_t from, std::uint32_t to, std::uint32_t bytes, std::uint32_t& arrived) {
    const Personality& nic = nic_.personality();
    const Frame frame = make_frame(bytes);
    Frame padded = frame;
    padded.resize(rounded(bytes));
    WHERRY_TRY(card_.write_window(from, padded));
    // Fill the destination with the frame's complement, so that old content cannot be taken for the frame.
    Frame before = padded;
    for (std::byte& byte : before) byte = ~byte;
    WHERRY_TRY(card_.write_window(to, before));
    const std::uint32_t at = next_ % kEntries;
    next_ = (next_ + 1) % kEntries;
    WHERRY_TRY(write_descriptor(kRxRing, at, nic.rx_descriptor_bytes, make_rx(options_.window + to)));
    WHERRY_TRY(write_descriptor(
        kTxRing, at, nic.tx_descriptor_bytes,
        make_tx(nic,
                {.address = options_.window + from, .bytes = bytes, .total = bytes, .end = true, .report = true})));
    nic_.write_rx_tail(next_);
    nic_.write_tx_tail(next_);
    return judge(frame, to, at, arrived);
  }

  Status judge(const Frame& frame, std::uint32_t to, std::uint32_t at, std::uint32_t& arrived) {
    const Personality& nic = nic_.personality();
    Descriptor sent, received;
    for (auto waited = 0us;; waited += kStep) {
      WHERRY_ASSIGN(sent, read_descriptor(kTxRing, at, nic.tx_descriptor_bytes));
      WHERRY_ASSIGN(received, read_descriptor(kRxRing, at, nic.rx_descriptor_bytes));
      if ((tx_done(nic, sent) && rx_done(nic, received)) || waited >= options_.limit) break;
      card_.pause(kStep);
    }
    Frame found(rounded(static_cast<std::uint32_t>(frame.size())));
    WHERRY_TRY(card_.read_window(to, found));
    if (rx_done(nic, received)) {
      judge_data(frame, found, read_rx(nic, received), arrived);
      return {};
    }
    judge_silence(frame, found, tx_done(nic, sent), at);
    return {};
  }

  void judge_data(const Frame& frame, const Frame& found, const RxDone& done, std::uint32_t& arrived) {
    if (done.bytes != frame.size() || !done.end) {
      find(Cause::kWrongData,
           fmt::format("A frame of {} bytes came back with {} in its descriptor: the NIC read another descriptor than "
                       "the one in the card.",
                       frame.size(), done.bytes),
           kOtherSlot);
      return;
    }
    const auto [want, have] = std::ranges::mismatch(frame, found);
    if (want == frame.end()) {
      ++arrived;
      report_.bytes += frame.size();
      return;
    }
    const auto wrong = static_cast<std::size_t>(want - frame.begin());
    std::size_t different = 0, ones = 0;
    for (std::size_t i = 0; i < frame.size(); ++i) {
      different += frame[i] != found[i] ? 1 : 0;
      ones += found[i] == std::byte{0xFF} ? 1 : 0;
    }
    if (ones == frame.size()) {
      find(Cause::kReadsDead, "The NIC reads all ones from the card's memory: its reads are not answered.", kOtherSlot);
      return;
    }
    find(Cause::kWrongData,
         fmt::format(
             "A frame of {} bytes arrived with {} of them wrong, the first at {}, and the NIC says that all is well.",
             frame.size(), different, wrong),
         kOtherSlot);
  }

  void judge_silence(const Frame& frame, const Frame& found, bool sent, std::uint32_t at) {
    const Progress progress = nic_.progress();
    // The payload may have arrived without its descriptor, which is a shorter write of the same kind.
    const bool data = std::ranges::equal(frame, std::span(found).first(frame.size()));
    const std::uint32_t before = report_.there + report_.back;
    if (!sent && progress.sent <= before) {
      if (progress.tx_head == at)
        return find(Cause::kReadsDead,
                    "The NIC never got the descriptor that it was to read from the card: its reads are not answered.",
                    kOtherSlot);
      return find(Cause::kLoopback, "The NIC read its descriptor, and sent nothing.", kResetNic);
    }
    if (progress.received <= before)
      return find(Cause::kLoopback, "The NIC sent the frame, and received nothing in loopback.", kResetNic);
    if (data)
      return find(Cause::kWrongData, "A frame arrived in the card's memory, and its descriptor did not.", kOtherSlot);
    find(Cause::kWritesDead,
         fmt::format("The NIC received the frame, and what it wrote{} did not arrive in the card's memory.",
                     sent ? "" : ", the transmit descriptor among it,"),
         kOtherSlot);
  }

  static constexpr const char* kOtherSlot =
      "Put both into slots behind one PCIe switch: this machine's root complex does not pass the traffic.";

  static constexpr const char* kResetNic =
      "Reset the NIC with `echo 1 > /sys/bus/pci/devices/<NIC>/reset`, and try again.";

  Nic& nic_;
  CardAccess& card_;
  const PreflightOptions& options_;
  SplitMix64 random_;
  PreflightReport report_{};
  std::uint32_t next_ = 0;
};

}  // namespace

PreflightReport run_preflight(Nic& nic, CardAccess& card, const PreflightOptions& options) {
  return Preflight(nic, card, options).run();
}

}  // namespace wherry::bypass
