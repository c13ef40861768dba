// SPDX-License-Identifier: Apache-2.0
// The pace of a rank: when its written messages leave, and when it yields its core.
#include "route/client/runtime_core.hpp"

namespace wherry::route::detail {

void RuntimeCore::pace(bool worked) noexcept {
  constexpr std::uint64_t kPollsBetweenLooks = 1 << 14;
  if (!notices_.empty()) push_notices();
  if (agreement_.round() != concluded_) conclude();
  if (!backlog_.empty()) worked |= backlog_.push();
  if (router_.undeliverable()) check_undeliverable();
  if (++polls_ % kPollsBetweenLooks == 0) look_around();
  const bool sending = sent != sent_at_last_poll_;
  sent_at_last_poll_ = sent;
  if (router_.armed()) {
    if (!worked && !sending) {
      router_.flush(Flush::kIdle);
      return;
    }
    router_.flush_late(static_cast<std::uint64_t>(options_.flush_after.count()));
  }
  if (worked || sending) {
    idle_.reset();
  } else {
    idle_.wait();
  }
}

void RuntimeCore::flush() noexcept {
  if (router_.abandoned()) return;
  router_.flush(Flush::kExplicit);
  wiring_->progress();
}

void RuntimeCore::note_first_message() noexcept {
  communicating_ = true;
  file_->communicate(statistics());
}

void RuntimeCore::note_quiet() noexcept {
  if (file_ != nullptr && communicating_) file_->quiet(statistics());
}

}  // namespace wherry::route::detail
