// SPDX-License-Identifier: Apache-2.0
// A ConfigurationStore that runs in its own thread.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/socket.hpp"
#include "kv/keeper/configuration_store.hpp"

namespace wherry::kv {

class StoreThread {
 public:
  explicit StoreThread(std::unique_ptr<ConfigurationStore> store);
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;
  ~StoreThread();  ///< waits for the store's present call

  /// Stores this configuration; retries until it succeeds or another keeper is elected. A call before an earlier one is
  /// stored replaces it, and take() does not report the earlier one.
  void keep(const Configuration& configuration);
  /// Returns the result once: ok, or kFailedPrecondition. Never waits.
  std::optional<wherry::Status> take();
  /// Readable when take() has a result.
  [[nodiscard]] int fd() const noexcept { return news_.get(); }

 private:
  void run();

  std::unique_ptr<ConfigurationStore> store_;
  Fd news_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Configuration> wish_;
  std::uint64_t wishes_ = 0;  ///< made so far
  std::optional<wherry::Status> done_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace wherry::kv
