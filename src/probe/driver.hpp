// SPDX-License-Identifier: Apache-2.0
// Posts and polls. This is the part inside the clock. One thread. Nothing is allocated after the constructor.
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
  /// No transfer has ended for that long: kDeadlineExceeded.
  static constexpr std::uint64_t kPatienceNs = 5'000'000'000;

  /// `stop`: set by Ctrl-C. Then every call soon returns kCancelled. All arguments outlive this.
  Driver(Clock& clock, Path& path, const Work& work, const std::atomic<bool>& stop);

  /// That many transfers, with as many in flight as the path has slots. The next is posted as soon as one ends. Returns
  /// the total time, ns. `each`: gets the latency of each, ps of one unit, which costs two readings of the clock for
  /// each transfer. Null: the clock is read only twice.
  [[nodiscard]] Result<std::uint64_t> closed_loop(std::uint64_t transfers, Histogram* each);
  /// A transfer every `interval_ns`, whether or not others have ended. Latency, ps, counts from the intended start of a
  /// transfer, so the wait behind a late one counts as well (G. Tene, "How not to measure latency": coordinated
  /// omission).
  [[nodiscard]] Result<std::uint64_t> open_loop(std::uint64_t transfers, double interval_ns, Histogram& each);

  /// Now, by the clock that counts for this path.
  [[nodiscard]] std::uint64_t now_ns() noexcept { return own_time_ ? path_.own_ns() : clock_.now_ns(); }

 private:
  [[nodiscard]] bool post(std::uint64_t begun_ns);
  /// Takes what has ended. `each` as above.
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
