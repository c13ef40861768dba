// SPDX-License-Identifier: Apache-2.0
// The stages of a transfer's time, from its posting until the driver knows its end, and the link's traffic meanwhile.
// An observer of the fabric (docs/design/dma-card.md, "Where the time goes"). It covers one channel, one direction, and
// whole transfers of one size. Use it on one thread only, the thread of the event queue.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "dma/card.hpp"
#include "sim/pcie/counters.hpp"
#include "sim/pcie/parameters.hpp"

namespace wherry::sim::card {

/// The ends of a transfer's stages, in their order.
enum class Stage : std::uint8_t {
  kPosted,         ///< the driver put it into its ring
  kRung,           ///< the doorbell that tells of it is at the root port
  kBellLeft,       ///< and on the link, behind what waited there
  kBellCame,       ///< and at the engine
  kFetchAsked,     ///< the engine asks for its descriptor
  kFetchAnswered,  ///< the host's memory has answered
  kFetchLeft,      ///< the descriptor is on the link, behind what waited there
  kFetchCame,      ///< and at the engine
  kAsked,          ///< the engine asks for its first byte; to the host: sends it
  kAskedLast,      ///< the same of its last
  kAnswered,       ///< the host's memory has answered with the last byte; to the host: that is at the card's port
  kLeft,           ///< it is on the link, behind what waited there
  kCame,           ///< and where it belongs
  kStatus,         ///< the engine posts the status word
  kTold,           ///< the driver has seen it
};
inline constexpr std::size_t kStages = 15;
[[nodiscard]] std::string_view to_string(Stage stage) noexcept;

/// The bytes on one direction of the link, with headers and framing.
struct LinkUse {
  std::uint64_t payload = 0;      ///< data of transfers
  std::uint64_t headers = 0;      ///< of the TLPs that have these
  std::uint64_t descriptors = 0;  ///< down: completions; up: requests
  std::uint64_t bells = 0;        ///< down
  std::uint64_t requests = 0;     ///< up: reads of data
  std::uint64_t status = 0;       ///< up: status words and messages
  std::uint64_t others = 0;       ///< of TLPs that are none of these: registers
  std::uint64_t dllps = 0;        ///< ACKs and credits; the caller's, from LinkCounters
  std::uint64_t all = 0;          ///< what it would have carried without a pause; the caller's

  [[nodiscard]] std::uint64_t used() const noexcept {
    return payload + headers + descriptors + bells + requests + status + others + dllps;
  }
};

struct StageOptions {
  std::uint64_t bells = 0;  ///< bus address of the doorbells
  std::uint64_t data = 0, data_bytes = 0;
  std::uint64_t stride = 0;        ///< transfer k is at data + k % places * stride + host_off
  std::uint64_t places = 1;        ///< more than are outstanding at once
  std::uint32_t descriptors = 16;  ///< of the ring; within a page
  pcie::LinkOverhead overhead{};   ///< of the link
};

class Stages final : public pcie::Observer {
 public:
  explicit Stages(const StageOptions& options) : options_(options) {}

  /// The driver posts the next transfer.
  void posted(pcie::Time now);
  /// The driver has seen that the next one is done.
  void told(pcie::Time now);
  /// Discards the observations so far.
  void begin();

  void on_tlp(pcie::Point point, std::uint32_t place, const pcie::Tlp& tlp, pcie::Time now) override;

  /// Mean time from the end of the previous stage to the end of this one, over the reported transfers, in ns. Of
  /// kPosted: 0.
  [[nodiscard]] std::array<double, kStages> mean_ns() const;
  [[nodiscard]] std::uint64_t transfers() const noexcept { return counted_; }
  /// Mean number of transfers per doorbell, and per read of descriptors.
  [[nodiscard]] double per_bell() const noexcept { return share(rung_, bells_); }
  [[nodiscard]] double per_fetch() const noexcept { return share(fetched_, fetches_); }
  [[nodiscard]] const LinkUse& down() const noexcept { return down_; }
  [[nodiscard]] const LinkUse& up() const noexcept { return up_; }

 private:
  using Times = std::array<pcie::Time, kStages>;
  static double share(std::uint64_t of, std::uint64_t by) noexcept {
    return by == 0 ? 0 : static_cast<double>(of) / static_cast<double>(by);
  }
  [[nodiscard]] Times* transfer(std::uint64_t number) noexcept;
  [[nodiscard]] Times* at_address(std::uint64_t address) noexcept;
  [[nodiscard]] bool is_data(std::uint64_t address) const noexcept;
  void bell(pcie::Point point, const pcie::Tlp& tlp, pcie::Time now);
  void descriptors(const pcie::Tlp& tlp, Stage stage, pcie::Time now);
  void status(const pcie::Tlp& tlp, pcie::Time now);
  void data(pcie::Point point, const pcie::Tlp& tlp, pcie::Time now);
  void count_bytes(const pcie::Tlp& tlp);

  StageOptions options_;
  std::deque<Times> open_;                                 ///< posted, not told
  std::uint64_t first_ = 0;                                ///< number of open_.front()
  std::uint64_t told_of_ = 0, fetched_to_ = 0, done_ = 0;  ///< transfers that bells, reads and status words spoke of
  bool counts_ = false;
  std::uint64_t counted_ = 0, bells_ = 0, rung_ = 0, fetches_ = 0, fetched_ = 0;
  std::array<double, kStages> sums_{};  ///< ps
  LinkUse down_, up_;
};

}  // namespace wherry::sim::card
