// SPDX-License-Identifier: Apache-2.0
// For tests: a file that represents a card's character device. Reads and writes are answered here: late,
// in part, wrongly or never. It uses FUSE's protocol (include/uapi/linux/fuse.h), without the library.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.hpp"
#include "base/temporary_directory.hpp"
#include "wherry/status.hpp"

namespace wherry::probe::testing_support {

class FuseCard {
 public:
  /// kUnavailable: /dev/fuse does not exist, or mounting is not permitted.
  static Result<std::unique_ptr<FuseCard>> mount();
  ~FuseCard();
  [[nodiscard]] std::string file() const { return directory_.file("card"); }

  /// These take effect from now on, until behave().
  void answer_at_most(std::size_t bytes);
  void delay(std::chrono::milliseconds time);
  /// Flips one bit of the 6th byte in the `number`-th call from now on (1: the next) that writes, or reads.
  void flip_in_call(unsigned number, bool writing);
  void fail_call(unsigned number, int error);
  void behave();
  [[nodiscard]] unsigned calls();

 private:
  FuseCard() = default;
  void serve();
  void answer(std::uint64_t unique, int error, const void* data, std::size_t bytes) const;
  void on_read(std::uint64_t unique, const std::byte* argument);
  void on_write(std::uint64_t unique, const std::byte* argument);

  static constexpr std::size_t kBytes = std::size_t{2} << 20;
  TemporaryDirectory directory_;
  Fd fuse_;
  std::thread server_;
  std::mutex mutex_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes);
  std::size_t most_ = SIZE_MAX;
  std::chrono::milliseconds delay_{0};
  unsigned flip_ = 0, fail_ = 0, calls_ = 0;
  bool flip_writes_ = false;
  int error_ = 0;
};

}  // namespace wherry::probe::testing_support
