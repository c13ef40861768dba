// SPDX-License-Identifier: Apache-2.0
// Address translation in the root complex: domains, pages of 4 KiB, a translation cache. Only requests that reach the
// root are translated. A switch routes peer to peer by the untranslated address, unless ACS redirects it.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "sim/pcie/parameters.hpp"
#include "sim/pcie/tlp.hpp"
#include "wherry/status.hpp"

namespace wherry::sim::pcie {

struct IommuCounters {
  std::uint64_t translated = 0;
  std::uint64_t cache_misses = 0;
  std::uint64_t faults_unmapped = 0;   ///< no such page in the domain
  std::uint64_t faults_forbidden = 0;  ///< the page may not be read, or written
  std::uint64_t faults_no_domain = 0;  ///< the function belongs to none
  [[nodiscard]] std::uint64_t faults() const noexcept { return faults_unmapped + faults_forbidden + faults_no_domain; }
};

/// Off at first: addresses are not translated. When it is on, a function without a domain cannot reach anything.
class Iommu {
 public:
  using Domain = std::uint32_t;
  struct Permission {
    bool read = true;
    bool write = true;
  };
  struct Translation {
    bool ok = false;
    std::uint64_t address = 0;
    Time latency = 0;
  };

  explicit Iommu(const RootOptions& root)
      : hit_(root.iommu_hit), miss_(root.iommu_miss), entries_(root.iotlb_entries) {}

  void enable(bool on) noexcept { enabled_ = on; }
  [[nodiscard]] bool enabled() const noexcept { return enabled_; }
  Domain add_domain();
  /// A function belongs to one domain; kHostId is never translated.
  void attach(FunctionId function, Domain domain);
  void detach(FunctionId function);
  /// `iova`, `target` (bus address: memory or a BAR) and `bytes`: whole pages. Refuses pages that are mapped already,
  /// or that lie in the interrupt range 0xfee00000 (VT-d specification 3.14), and then maps nothing.
  Status map(Domain domain, std::uint64_t iova, std::uint64_t target, std::uint64_t bytes,
             Permission permission = {true, true});
  /// Ignores pages that are not mapped. The cache forgets the pages at once.
  void unmap(Domain domain, std::uint64_t iova, std::uint64_t bytes);

  /// No request crosses a page.
  [[nodiscard]] Translation translate(const Tlp& request);
  [[nodiscard]] const IommuCounters& counters() const noexcept { return counters_; }

 private:
  struct Entry {
    std::uint64_t target;
    Permission permission;
  };
  struct Key {
    Domain domain;
    std::uint64_t page;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  bool cached(const Key& key);

  Time hit_, miss_;
  std::size_t entries_;
  bool enabled_ = false;
  std::vector<std::unordered_map<std::uint64_t, Entry>> domains_;
  std::unordered_map<FunctionId, Domain> attached_;
  std::list<Key> cache_;  ///< the latest use first
  std::unordered_map<Key, std::list<Key>::iterator, KeyHash> cache_index_;
  IommuCounters counters_;
};

}  // namespace wherry::sim::pcie
