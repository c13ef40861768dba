// SPDX-License-Identifier: Apache-2.0
#include "probe/environment.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

#include "base/machine.hpp"

namespace wherry::probe {
namespace {

constexpr const char* kUnknown = "unknown";

/// The first line of a small file; empty if there is none.
std::string line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}
std::string known(std::string text) { return text.empty() ? kUnknown : text; }

/// Turns "always [madvise] never" into "madvise".
std::string chosen(const std::string& text) {
  const std::size_t begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end == std::string::npos || end < begin
             ? known(text)
             : text.substr(begin + 1, end - begin - 1);
}

/// The value of the first line that begins with `name`, in /proc/cpuinfo or /proc/meminfo.
std::string value_of(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(name) || colon == std::string::npos) continue;
    const std::size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::string iommu(const std::string& root) {
  std::error_code error;
  const std::filesystem::directory_iterator units(root + "/sys/class/iommu", error);
  if (error) return kUnknown;
  const auto count = std::distance(begin(units), end(units));
  return count == 0 ? "off" : fmt::format("{} units", count);
}

std::string memlock() {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return kUnknown;
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} KiB", limit.rlim_cur / 1024);
}

std::string megahertz(const std::string& kilohertz) {
  const bool number =
      !kilohertz.empty() && std::ranges::all_of(kilohertz, [](unsigned char c) { return std::isdigit(c); });
  return number && kilohertz.size() > 3 ? kilohertz.substr(0, kilohertz.size() - 3) : kUnknown;
}

}  // namespace

std::vector<unsigned> parse_list(const std::string& text) {
  std::vector<unsigned> found;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    std::istringstream range(part);
    unsigned first = 0, last = 0;
    char dash = 0;
    if (!(range >> first)) return {};
    last = first;
    if (range >> dash && (dash != '-' || !(range >> last))) return {};
    if (last < first || last - first > 4096) return {};
    for (unsigned i = first; i <= last; ++i) found.push_back(i);
  }
  return found;
}

std::vector<unsigned> numa_nodes(const std::string& root) {
  auto nodes = parse_list(line_of(root + "/sys/devices/system/node/online"));
  return nodes.empty() ? std::vector<unsigned>{0} : nodes;
}

std::map<std::string, std::string> environment(const std::string& root) {
  const std::string cpus = root + "/sys/devices/system/cpu", cpuinfo = root + "/proc/cpuinfo";
  std::map<std::string, std::string> found;
  const MachineKey machine = this_machine(root);
  found["cpu"] = machine.cpu;
  found["kernel"] = machine.kernel;
  found["numa_nodes"] = fmt::format("{}", numa_nodes(root).size());
  found["smt"] = known(line_of(cpus + "/smt/control"));
  found["governor"] = known(line_of(cpus + "/cpu0/cpufreq/scaling_governor"));
  found["frequency_max_mhz"] = megahertz(line_of(cpus + "/cpu0/cpufreq/cpuinfo_max_freq"));
  const std::string flags = " " + value_of(cpuinfo, "flags") + " ";
  found["hypervisor"] = flags.find(" hypervisor ") == std::string::npos ? "no" : "yes";
  found["thp"] = chosen(line_of(root + "/sys/kernel/mm/transparent_hugepage/enabled"));
  found["hugepages"] = known(value_of(root + "/proc/meminfo", "HugePages_Total"));
  found["iommu"] = iommu(root);
  found["memlock"] = memlock();
  found["preemption"] = chosen(line_of(root + "/sys/kernel/debug/sched/preempt"));
  const std::string load = line_of(root + "/proc/loadavg");
  found["load"] = known(load.substr(0, load.find(' ')));
  return found;
}

}  // namespace wherry::probe
