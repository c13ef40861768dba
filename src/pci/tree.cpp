// SPDX-License-Identifier: Apache-2.0
#include "pci/tree.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace wherry::pci {
namespace {

namespace fs = std::filesystem;

// Bits of the third column of the file `resource`: include/linux/ioport.h.
constexpr std::uint64_t kIoResource = 0x100, kMemoryResource = 0x200, kPrefetchResource = 0x2000,
                        kWideResource = 0x10'0000, kUnsetResource = 0x2000'0000;

std::string read_small(const fs::path& path, std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string text(most, '\0');
  file.read(text.data(), static_cast<std::streamsize>(most));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return text;
}

/// Parses a number such as "0x8086\n". 0 for any other text.
std::uint64_t number(std::string_view text, int base = 16) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc{} && end == text.data() + text.size() ? value : 0;
}

std::string link_name(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string() : target.filename().string();
}

ConfigSpace read_config(const fs::path& directory) {
  const std::string text = read_small(directory / "config", kConfigExtended);
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return ConfigSpace(std::vector<std::byte>(first, first + text.size()));
}

/// Reads the host bridge and the ports from the path that the function's link points to.
void read_upstream(const fs::path& directory, PciFunction& function) {
  std::error_code error;
  const fs::path real = fs::canonical(directory, error);
  if (error) return;
  for (const fs::path& part : real) {
    const std::string name = part.string();
    if (name.starts_with("pci") && name.find(':') != std::string::npos) {
      function.host_bridge = name;
      function.ports.clear();
    } else if (auto at = parse_bus_address(name); at && *at != function.at) {
      function.ports.push_back(*at);
    }
  }
}

Result<PciFunction> read_function(const fs::path& directory, BusAddress at) {
  PciFunction function;
  function.at = at;
  function.vendor = static_cast<std::uint16_t>(number(read_small(directory / "vendor", 16)));
  function.device = static_cast<std::uint16_t>(number(read_small(directory / "device", 16)));
  if (function.vendor == 0) return Status(StatusCode::kNotFound, fmt::format("{} has gone", at.text()));
  function.class_code = static_cast<std::uint32_t>(number(read_small(directory / "class", 16)) & 0xFF'FFFF);
  function.bars = parse_resources(read_small(directory / "resource", 4096));
  function.config = read_config(directory);
  for (unsigned i = 0; i < function.bars.size(); ++i) {
    Bar& bar = function.bars[i];
    const auto held = function.config.bar(i);
    bar.on_bus = held && held->memory ? held->address : bar.address;
  }
  if (const std::string group = link_name(directory / "iommu_group"); !group.empty())
    function.group = static_cast<int>(number(group, 10));
  function.driver = link_name(directory / "driver");
  read_upstream(directory, function);
  return function;
}

}  // namespace

std::array<Bar, 6> parse_resources(const std::string& text) {
  std::array<Bar, 6> bars{};
  std::istringstream lines(text);
  std::string line;
  for (Bar& bar : bars) {
    if (!std::getline(lines, line)) break;
    std::istringstream words(line);
    std::string first, last, flags;
    words >> first >> last >> flags;
    const std::uint64_t from = number(first), to = number(last), bits = number(flags);
    if ((bits & (kIoResource | kMemoryResource)) == 0 || to < from || (to == 0 && from == 0)) continue;
    if (from == 0 && to == ~std::uint64_t{0}) continue;
    bar = {.address = from,
           .bytes = to - from + 1,
           .memory = (bits & kMemoryResource) != 0,
           .wide = (bits & kWideResource) != 0,
           .prefetchable = (bits & kPrefetchResource) != 0,
           // A resource to which the kernel gave no address begins at 0.
           .assigned = from != 0 && (bits & kUnsetResource) == 0,
           .on_bus = from};
  }
  return bars;
}

std::vector<ReservedRange> parse_reserved(const std::string& text) {
  std::vector<ReservedRange> ranges;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string first, last, kind;
    words >> first >> last >> kind;
    ReservedRange range{number(first), number(last), kind};
    if (kind.empty() || kind == "direct-relaxable" || range.last < range.first || range.last == 0) continue;
    ranges.push_back(std::move(range));
  }
  return ranges;
}

Result<PciTree> PciTree::read(const std::string& sysfs) {
  PciTree tree;
  const fs::path bus = fs::path(sysfs) / "bus/pci/devices";
  std::error_code error;
  for (fs::directory_iterator entry(bus, error), end; !error && entry != end; entry.increment(error)) {
    const auto at = parse_bus_address(entry->path().filename().string());
    if (!at) continue;
    if (auto function = read_function(entry->path(), *at)) tree.functions_.push_back(*std::move(function));
  }
  if (error)
    return Status(StatusCode::kNotFound,
                  fmt::format("this machine shows no PCI bus: {}: {}", bus.string(), error.message()));
  std::ranges::sort(tree.functions_, {}, &PciFunction::at);
  const fs::path groups = fs::path(sysfs) / "kernel/iommu_groups";
  for (fs::directory_iterator entry(groups, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    tree.reserved_[static_cast<int>(number(name, 10))] =
        parse_reserved(read_small(entry->path() / "reserved_regions", 65'536));
  }
  return tree;
}

const PciFunction* PciTree::find(BusAddress at) const noexcept {
  const auto place = std::ranges::lower_bound(functions_, at, {}, &PciFunction::at);
  return place != functions_.end() && place->at == at ? &*place : nullptr;
}

std::vector<const PciFunction*> PciTree::members(int group) const {
  std::vector<const PciFunction*> found;
  for (const PciFunction& function : functions_)
    if (group != kNoGroup && function.group == group) found.push_back(&function);
  return found;
}

const std::vector<ReservedRange>& PciTree::reserved(int group) const noexcept {
  static const std::vector<ReservedRange> none;
  const auto place = reserved_.find(group);
  return place == reserved_.end() ? none : place->second;
}

}  // namespace wherry::pci
