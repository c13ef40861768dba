// SPDX-License-Identifier: Apache-2.0
// Posts and polls transfers: the timed part of a run. For one thread. Only the constructor allocates memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "probe/histogram.hpp"
#include "probe/path.hpp"
#include "probe/timer.hpp"

namespace wherry::probe {

class Driver {
 public:
  /// kDeadlineExceeded follows if no transfer has ended for this time.
  static constexpr std::uint64_t kPatienceNs = 5'000'000'000;

  /// `stop`: set by Ctrl-C; every call then soon returns kCancelled. All arguments must outlive this object.
  Driver(Clock& clock, Path& path, const Work& work, const std::atomic<bool>& stop);

  /// Runs `transfers` transfers, with all slots of the path in flight, and posts the next one when
  /// one ends. Returns the total time, ns. `each` receives each transfer's latency, ps per unit,
  /// which costs two readings of the clock. If it is null, the clock is read only twice in total.
  [[nodiscard]] Result<std::uint64_t> closed_loop(std::uint64_t transfers, Histogram* each);
  /// Starts a transfer every `interval_ns`, even if earlier ones have not ended.
  /// Latency, ps, counts from a transfer's intended start, so it includes the wait
  /// behind a late one (coordinated omission: G. Tene, "How not to measure latency").
  [[nodiscard]] Result<std::uint64_t> open_loop(std::uint64_t transfers, double interval_ns, Histogram& each);

  /// The present time of the clock that applies to this path.
  [[nodiscard]] std::uint64_t now_ns() noexcept { return own_time_ ? path_.own_ns() : clock_.now_ns(); }

 private:
  [[nodiscard]] bool post(std::uint64_t begun_ns);
  /// Takes ended transfers. `each` as above.
  [[nodiscard]] Status take(Histogram* each);
  [[nodiscard]] Status idle();

  Clock& clock_;
  Path& path_;
  const std::atomic<bool>& stop_;
  bool own_time_;
  unsigned units_;
  std::vector<unsigned> free_, done_;
  std::vector<std::uint64_t> begun_ns_;
  std::vector<char> busy_;
  std::uint64_t ended_ = 0;
  std::uint64_t empty_polls_ = 0;
  std::uint64_t waiting_since_ns_ = 0;
  std::uint64_t yield_every_;
};

}  // namespace wherry::probe
