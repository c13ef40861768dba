// SPDX-License-Identifier: Apache-2.0
#include "probe/cache_model.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace wherry::bench {

CacheLevel::CacheLevel(CacheShape shape) : shape_(shape), ways_(shape.sets() * shape.ways) {}

bool CacheLevel::touch(std::uint64_t line, bool write) noexcept {
  for (Way& way : set_of(line)) {
    if (way.used != 0 && way.line == line) {
      way.used = ++clock_;
      way.dirty |= write;
      return true;
    }
  }
  return false;
}

CacheLevel::Evicted CacheLevel::place(std::uint64_t line, bool dirty) noexcept {
  const std::span<Way> set = set_of(line);
  Way& oldest = *std::ranges::min_element(set, {}, &Way::used);
  const Evicted gone{oldest.line, oldest.used != 0, oldest.used != 0 && oldest.dirty};
  oldest = {line, ++clock_, dirty};
  return gone;
}

void CacheLevel::drop(std::uint64_t line) noexcept {
  for (Way& way : set_of(line))
    if (way.used != 0 && way.line == line) way = {};
}

CacheModel::CacheModel(std::span<const CacheShape> shapes) {
  for (const CacheShape shape : shapes) levels_.emplace_back(shape);
  counts_.levels.resize(shapes.size());
}

void CacheModel::count_anew() {
  counts_ = {};
  counts_.levels.resize(levels_.size());
}

void CacheModel::access(std::uint64_t address, std::size_t bytes, bool write) noexcept {
  if (bytes == 0) return;
  const std::uint64_t last = (address + bytes - 1) / CacheShape::kLine;
  for (std::uint64_t line = address / CacheShape::kLine; line <= last; ++line) touch(line, write);
}

void CacheModel::touch(std::uint64_t line, bool write) noexcept {
  std::size_t level = 0;
  for (; level < levels_.size(); ++level) {
    CacheCounts::Level& counts = counts_.levels[level];
    ++(write ? counts.stores : counts.loads);
    // Only the first level has the new value; the next level gets it at eviction.
    if (levels_[level].touch(line, write && level == 0)) break;
    ++(write ? counts.store_misses : counts.load_misses);
  }
  while (level-- > 0) place(level, line, write && level == 0);
}

void CacheModel::place(std::size_t level, std::uint64_t line, bool dirty) noexcept {
  for (; level < levels_.size(); ++level) {
    if (levels_[level].touch(line, dirty)) return;  // what the level above evicts may be here still
    const CacheLevel::Evicted gone = levels_[level].place(line, dirty);
    if (!gone.dirty) return;
    line = gone.line;
    dirty = true;
  }
  ++counts_.written_back;
}

void CacheModel::deliver(std::uint64_t address, std::size_t bytes, bool into_cache) noexcept {
  if (bytes == 0) return;
  const std::uint64_t last = (address + bytes - 1) / CacheShape::kLine;
  for (std::uint64_t line = address / CacheShape::kLine; line <= last; ++line) {
    for (CacheLevel& level : levels_) level.drop(line);
    if (into_cache) place(levels_.size() - 1, line, true);
  }
}

namespace {

std::string first_word(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

/// "32K", "1M", "1024"; 0: neither.
std::size_t size_of(const std::string& text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  const std::string unit(end, text.data() + text.size());
  if (unit.empty()) return number;
  if (unit == "K") return number << 10;
  return unit == "M" ? number << 20 : 0;
}

}  // namespace

CacheSystem this_machine(int cpu, const std::string& root) {
  CacheSystem found{"this machine", {}, "/sys/devices/system/cpu, as the hypervisor shows it"};
  const std::string folder = root + "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index";
  std::vector<std::pair<std::size_t, CacheShape>> levels;
  for (int index = 0;; ++index) {
    const std::string cache = folder + std::to_string(index) + "/";
    const std::string type = first_word(cache + "type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    const std::size_t level = size_of(first_word(cache + "level"));
    const CacheShape shape{size_of(first_word(cache + "size")),
                           static_cast<unsigned>(size_of(first_word(cache + "ways_of_associativity")))};
    if (level == 0 || !shape.valid() || size_of(first_word(cache + "coherency_line_size")) != CacheShape::kLine)
      return {found.name, {}, "the kernel does not tell sizes and ways of all caches"};
    levels.emplace_back(level, shape);
  }
  std::ranges::sort(levels, {}, &std::pair<std::size_t, CacheShape>::first);
  for (const auto& [level, shape] : levels) found.levels.push_back(shape);
  return found;
}

std::span<const CacheSystem> paper_systems() {
  // Paper 001 section 4 names the processors. Sizes and ways: Intel, 3rd Gen Xeon Scalable (Ice Lake SP: L1D 48 KiB and
  // 12 ways, L2 1.25 MiB and 20 ways a core, L3 1.5 MiB a core and 12 ways; 16 cores). Arm Cortex-A78 TRM (L1D 64 KiB
  // and 4 ways, L2 512 KiB and 8 ways a core); BlueField-3: 16 MiB of L3 for 16 cores, ways assumed to be 16. In the
  // paper, only 8 cores are enabled, and 32 MB is "more than 2x" the last level.
  static const std::vector<CacheSystem> systems{
      {"xeon_6326", {{48 << 10, 12}, {1280 << 10, 20}, {24 << 20, 12}}, "Intel's figures of Ice Lake SP"},
      {"bluefield_3",
       {{64 << 10, 4}, {512 << 10, 8}, {16 << 20, 16}},
       "Arm's of Cortex-A78; 16 MiB of L3, 16 ways assumed"},
  };
  return systems;
}

}  // namespace wherry::bench
