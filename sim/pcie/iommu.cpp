// SPDX-License-Identifier: Apache-2.0
#include "sim/pcie/iommu.hpp"

#include <fmt/format.h>

#include "base/random.hpp"

namespace wherry::sim::pcie {
namespace {
// VT-d specification 3.14: writes to this range are interrupts, and are never translated.
constexpr std::uint64_t kInterrupts = 0xfee00000, kInterruptsEnd = 0xfef00000;
}  // namespace

std::size_t Iommu::KeyHash::operator()(const Key& key) const noexcept {
  return static_cast<std::size_t>(splitmix64(key.page, key.domain));
}

Iommu::Domain Iommu::add_domain() {
  domains_.emplace_back();
  return static_cast<Domain>(domains_.size() - 1);
}

void Iommu::attach(FunctionId function, Domain domain) { attached_[function] = domain; }
void Iommu::detach(FunctionId function) { attached_.erase(function); }

Status Iommu::map(Domain domain, std::uint64_t iova, std::uint64_t target, std::uint64_t bytes, Permission permission) {
  if (domain >= domains_.size()) {
    return {StatusCode::kNotFound, fmt::format("IOMMU domain {} does not exist: call add_domain() first", domain)};
  }
  if (bytes == 0 || iova % kPageBytes != 0 || target % kPageBytes != 0 || bytes % kPageBytes != 0 ||
      iova + bytes < iova) {
    return {StatusCode::kInvalidArgument,
            fmt::format("IOMMU mapping of {:#x} bytes from {:#x} to {:#x} is not whole pages of {} bytes", bytes, iova,
                        target, kPageBytes)};
  }
  if (iova < kInterruptsEnd && iova + bytes > kInterrupts) {
    return {StatusCode::kInvalidArgument,
            fmt::format("IOVA range {:#x} to {:#x} touches the interrupt range {:#x} to {:#x}", iova, iova + bytes,
                        kInterrupts, kInterruptsEnd)};
  }
  auto& pages = domains_[domain];
  for (std::uint64_t at = 0; at < bytes; at += kPageBytes) {
    if (pages.contains((iova + at) / kPageBytes)) {
      return {StatusCode::kAlreadyExists, fmt::format("IOVA {:#x} is mapped already in domain {}", iova + at, domain)};
    }
  }
  for (std::uint64_t at = 0; at < bytes; at += kPageBytes) {
    pages.emplace((iova + at) / kPageBytes, Entry{target + at, permission});
  }
  return ok_status();
}

void Iommu::unmap(Domain domain, std::uint64_t iova, std::uint64_t bytes) {
  if (domain >= domains_.size()) return;
  for (std::uint64_t at = 0; at < bytes; at += kPageBytes) {
    const Key key{domain, (iova + at) / kPageBytes};
    domains_[domain].erase(key.page);
    if (const auto found = cache_index_.find(key); found != cache_index_.end()) {
      cache_.erase(found->second);
      cache_index_.erase(found);
    }
  }
}

bool Iommu::cached(const Key& key) {
  if (!cache_.empty() && cache_.front() == key) return true;
  const auto found = cache_index_.find(key);
  if (found != cache_index_.end()) {
    cache_.splice(cache_.begin(), cache_, found->second);
    return true;
  }
  if (entries_ == 0) return false;
  if (cache_.size() == entries_) {
    cache_index_.erase(cache_.back());
    cache_.back() = key;
    cache_.splice(cache_.begin(), cache_, std::prev(cache_.end()));
  } else {
    cache_.push_front(key);
  }
  cache_index_[key] = cache_.begin();
  return false;
}

Iommu::Translation Iommu::translate(const Tlp& request) {
  const auto attached = attached_.find(request.requester);
  if (attached == attached_.end() || attached->second >= domains_.size()) {
    ++counters_.faults_no_domain;
    return {};
  }
  const Key key{attached->second, request.address / kPageBytes};
  const auto& pages = domains_[key.domain];
  const auto entry = pages.find(key.page);
  if (entry == pages.end()) {
    ++counters_.faults_unmapped;
    return {};
  }
  const Permission permission = entry->second.permission;
  if (request.kind == TlpKind::kWrite ? !permission.write : !permission.read) {
    ++counters_.faults_forbidden;
    return {};
  }
  ++counters_.translated;
  const bool hit = cached(key);
  if (!hit) ++counters_.cache_misses;
  return {true, entry->second.target + request.address % kPageBytes, hit ? hit_ : miss_};
}

}  // namespace wherry::sim::pcie
