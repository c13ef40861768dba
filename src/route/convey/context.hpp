// SPDX-License-Identifier: Apache-2.0
// The common part of a process's conveyors: its Runtime, and slots with the handlers of their messages.
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

/// The type behind convey_t.
struct conveyor {
  wherry::route::convey::Conveyor conveyor;
  wherry::route::convey::Slot* slot;
};

namespace wherry::route::convey {

/// The handlers of one conveyor. They cannot be unregistered, so a later conveyor reuses the slot of a freed one. All
/// ranks make and free conveyors in the same order, so the lowest free slot is the same on all ranks.
class Slot {
 public:
  Slot(detail::RuntimeCore& core, std::size_t number);
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  [[nodiscard]] convey_t* conveyor() const noexcept { return conveyor_.get(); }
  convey_t* create(detail::RuntimeCore& core, Traits traits);
  void destroy() noexcept { conveyor_.reset(); }

 private:
  std::uint32_t epoch_ = 0;  ///< counts the sessions, to recognise credits that come late
  std::uint32_t data_ = 0, credit_ = 0;
  std::optional<detail::Agreement> agreement_;
  std::unique_ptr<convey_t> conveyor_;
};

class Context {
 public:
  /// The context of this process. The first call joins the job.
  static Result<Context*> get();
  explicit Context(Runtime runtime) : runtime_(std::move(runtime)) {}
  [[nodiscard]] Runtime& runtime() noexcept { return runtime_; }
  /// Collective: blocks until all ranks have called it.
  Result<convey_t*> create(Traits traits);

 private:
  static void leave() noexcept;
  [[nodiscard]] bool under_way() const noexcept;

  Runtime runtime_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace wherry::route::convey
