// SPDX-License-Identifier: Apache-2.0
#include "kv/keeper/store_thread.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

#include "base/log.hpp"

namespace wherry::kv {

StoreThread::StoreThread(std::unique_ptr<ConfigurationStore> store)
    : store_(std::move(store)), news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), thread_([this] { run(); }) {}

StoreThread::~StoreThread() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StoreThread::keep(const Configuration& configuration) {
  {
    const std::lock_guard lock(mutex_);
    wish_ = configuration;
    ++wishes_;
    done_.reset();
  }
  changed_.notify_one();
}

std::optional<wherry::Status> StoreThread::take() {
  std::uint64_t count = 0;
  while (::read(news_.get(), &count, sizeof count) > 0) {
  }
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, std::nullopt);
}

void StoreThread::run() {
  constexpr std::chrono::milliseconds kAgain(100);  // after a failure
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return over_ || wish_; });
    if (over_) return;
    const Configuration configuration = *wish_;
    const std::uint64_t number = wishes_;
    lock.unlock();
    wherry::Status status = store_->store(configuration);
    lock.lock();
    if (number != wishes_) continue;  // another one is to be kept by now
    if (status || status.code() == StatusCode::kFailedPrecondition) {
      wish_.reset();
      done_ = std::move(status);
      const std::uint64_t one = 1;
      (void)!::write(news_.get(), &one, sizeof one);
      continue;
    }
    spdlog::warn("kv keeper: {}; trying again", status.message());
    changed_.wait_for(lock, kAgain, [&] { return over_ || wishes_ != number; });
  }
}

}  // namespace wherry::kv
