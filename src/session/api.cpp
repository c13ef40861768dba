// SPDX-License-Identifier: Apache-2.0
// The public classes of session.hpp. They are thin handles to SessionCore.
#include <utility>

#include "base/try.hpp"
#include "session/session_core.hpp"

namespace wherry {

// ---------------------------------------------------------------- Session

Session::Session(std::unique_ptr<detail::SessionCore> core) noexcept : core_(std::move(core)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::open(const SessionOptions& options) {
  WHERRY_ASSIGN(auto core, detail::SessionCore::open(options));
  return Session(std::move(core));
}

const SessionInfo& Session::info() const noexcept { return core_->info(); }
std::size_t Session::in_flight() const noexcept { return core_->in_flight(); }
Status Session::drain(std::chrono::nanoseconds timeout) { return core_->drain(timeout); }

Status Session::close(std::chrono::nanoseconds timeout) {
  if (core_->closed()) return ok_status();
  Status s = core_->drain(timeout);
  (void)core_->leave();
  return s;
}

Result<Memory> Session::allocate(std::size_t bytes) {
  if (bytes == 0) return Status(StatusCode::kInvalidArgument, "allocate(0): want at least one byte");
  WHERRY_ASSIGN(auto index, core_->allocate(bytes));
  Memory memory;
  memory.data_ = core_->region_data(index);
  memory.size_ = bytes;
  memory.region_ = index;
  memory.core_ = core_.get();
  return memory;
}

Result<Region> Session::register_memory(const void* data, std::size_t bytes) {
  if (data == nullptr || bytes == 0)
    return Status(StatusCode::kInvalidArgument, "register_memory: want an address and at least one byte");
  WHERRY_ASSIGN(auto index, core_->register_memory(const_cast<void*>(data), bytes));
  Region region;
  region.core_ = core_.get();
  region.region_ = index;
  return region;
}

// ---------------------------------------------------------------- Memory, Region

Memory::Memory(Memory&& other) noexcept
    : core_(std::exchange(other.core_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      region_(other.region_) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(region_, other.region_);
  return *this;
}

Memory::~Memory() {
  if (core_ != nullptr) core_->remove_region_waiting(region_);
}

Region::Region(Region&& other) noexcept : core_(std::exchange(other.core_, nullptr)), region_(other.region_) {}

Region& Region::operator=(Region&& other) noexcept {
  std::swap(core_, other.core_);
  std::swap(region_, other.region_);
  return *this;
}

Region::~Region() {
  if (core_ != nullptr) core_->remove_region_waiting(region_);
}

Status Region::unregister() {
  if (core_ == nullptr) return {StatusCode::kFailedPrecondition, "this region is not registered"};
  Status s = core_->remove_region(region_);
  if (s) core_ = nullptr;
  return s;
}

}  // namespace wherry
