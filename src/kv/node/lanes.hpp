// SPDX-License-Identifier: Apache-2.0
// The lane records: the last request of each lane and its outcome.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/generated/frame.hpp"
#include "kv/serial.hpp"

namespace wherry::kv {

struct LaneRecord {
  std::uint32_t request = 0;
  std::uint32_t version = 0;
  Status status = Status::ok;
  bool in_flight = false;  ///< in this leader's window, new
  bool unsettled = false;  ///< pending or leftover at this node
  bool leftover = false;   ///< then: leftover

  /// True if the lane was never used, so that any request is newer.
  [[nodiscard]] bool empty() const noexcept {
    return request == 0 && version == 0 && status == Status::ok && !in_flight;
  }
  [[nodiscard]] bool settled() const noexcept { return !in_flight && !unsettled; }
  /// An `ok` with an answer has a version. Without a version, it is only known that the request has ended.
  [[nodiscard]] bool has_answer() const noexcept { return settled() && (status != Status::ok || version != 0); }
};

class Lanes {
 public:
  explicit Lanes(unsigned bits) : records_(std::size_t{1} << bits) {}

  [[nodiscard]] std::size_t count() const noexcept { return records_.size(); }
  [[nodiscard]] LaneRecord& operator[](std::uint16_t lane) noexcept { return records_[lane]; }
  void clear() noexcept {
    for (LaneRecord& r : records_) r = {};
  }

  /// Records an `ok` write, unless the lane already has a newer request.
  void learn(std::uint16_t lane, std::uint32_t request, std::uint32_t version, bool settled) noexcept {
    LaneRecord& r = records_[lane];
    if (!r.empty() && newer(r.request, request)) return;
    r = {.request = request, .version = version, .unsettled = !settled};
  }
  /// The recorded request took effect on every live replica.
  void finish(std::uint16_t lane, std::uint32_t request, std::uint32_t version) noexcept {
    LaneRecord& r = records_[lane];
    if (!r.empty() && r.request == request) r = {.request = request, .version = version};
  }
  void settle(std::uint16_t lane, std::uint32_t request) noexcept {
    if (records_[lane].request == request) records_[lane].unsettled = records_[lane].leftover = false;
  }
  /// The recorded write was pending when its epoch ended.
  void leave_over(std::uint16_t lane, std::uint32_t request) noexcept {
    if (records_[lane].request == request) records_[lane].unsettled = records_[lane].leftover = true;
  }
  /// The request had no effect, so the client's next try counts as new.
  void roll_back(std::uint16_t lane, std::uint32_t request) noexcept {
    if (records_[lane].request == request) records_[lane] = {.request = request - 1};
  }

 private:
  std::vector<LaneRecord> records_;
};

}  // namespace wherry::kv
