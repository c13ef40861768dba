// SPDX-License-Identifier: Apache-2.0
// What the conveyors of a process share: its route, and the handlers of each conveyor's messages.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "route/client/agreement.hpp"
#include "route/convey/conveyor.hpp"
#include "wherry/route.hpp"

namespace wherry::route::convey {
class Slot;
}

/// convey_t
struct conveyor {
  wherry::route::convey::Conveyor conveyor;
  wherry::route::convey::Slot* slot;
};

namespace wherry::route::convey {

/// Handlers cannot be taken back, so a conveyor that is freed leaves its own to a later one. All ranks make and free
/// theirs in the same order: the lowest free slot is the same everywhere.
class Slot {
 public:
  Slot(detail::RuntimeCore& core, std::size_t number);
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  [[nodiscard]] convey_t* conveyor() const noexcept { return conveyor_.get(); }
  convey_t* create(detail::RuntimeCore& core, Traits traits);
  void destroy() noexcept { conveyor_.reset(); }

 private:
  std::uint32_t epoch_ = 0;  ///< counts the sessions, so that late acknowledgements are known
  std::uint32_t data_ = 0, credit_ = 0;
  std::optional<detail::Agreement> agreement_;
  std::unique_ptr<convey_t> conveyor_;
};

class Home {
 public:
  /// That of this process, which joins the job if it has not yet.
  static Result<Home*> get();
  explicit Home(Runtime runtime) : runtime_(std::move(runtime)) {}
  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  /// Collective.
  Result<convey_t*> create(Traits traits);

 private:
  static void leave() noexcept;
  [[nodiscard]] bool under_way() const noexcept;

  Runtime runtime_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace wherry::route::convey
