// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace wherry::pci {

/// A list of steps to undo. The destructor runs them in reverse order. Move-only.
class Undo {
 public:
  Undo() = default;
  Undo(Undo&& other) noexcept : steps_(std::exchange(other.steps_, {})) {}
  Undo& operator=(Undo&& other) noexcept {
    if (this != &other) {
      run();
      steps_ = std::exchange(other.steps_, {});
    }
    return *this;
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() { run(); }

  /// `step` must not throw.
  void push(std::function<void()> step) { steps_.push_back(std::move(step)); }
  /// Runs all steps now.
  void run() noexcept {
    while (!steps_.empty()) {
      const std::function<void()> step = std::move(steps_.back());
      steps_.pop_back();
      step();
    }
  }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace wherry::pci
