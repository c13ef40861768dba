// SPDX-License-Identifier: Apache-2.0
#include "common/report.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <stdexcept>

#include "base/version.hpp"
#include "fabric/fabric.hpp"

namespace wherry::bench {

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  utsname name{};
  uname(&name);
  return name.machine;
}

std::string kernel() {
  utsname name{};
  uname(&name);
  return name.release;
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", &utc);
  return text;
}

}  // namespace

Report::Report(const std::string& name, std::size_t cores, const std::map<std::string, int>& pinning, int repetitions) {
  head_ = {{"schema", 1}, {"name", name}, {"when", now_text()}, {"wherry", kVersion}};
  head_["machine"] = {{"cpu", cpu_model()},
                      {"cores", cores},
                      {"kernel", kernel()},
                      {"memory_bytes", sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE)}};
  head_["versions"] = {{"ucx", fabric::ucx_version()}, {"compiler", __VERSION__}};
  head_["pinning"] = pinning;
  head_["repetitions"] = repetitions;
}

void Report::bar(const std::string& name, Bar bar, const std::string& comparison, double target,
                 const std::string& unit, const std::string& published) {
  Row row = {{"value", bar.value},
             {"min", std::min(bar.min, bar.value)},
             {"max", std::max(bar.max, bar.value)},
             {"unit", unit},
             {"published", nullptr}};
  if (!comparison.empty()) {
    row["target"] = fmt::format("{} {:g}", comparison, target);
    row["pass"] = comparison == ">=" ? bar.value >= target : bar.value <= target;
  }
  if (!published.empty()) row["published"] = published;
  bars_[name] = std::move(row);
}

void Report::write(const std::string& path) const {
  Row all = head_;
  all["bars"] = bars_;
  all["results"] = results_;
  const std::string part = path + ".part";
  std::ofstream out(part);
  out << all.dump(2) << '\n';
  out.close();
  if (!out || std::rename(part.c_str(), path.c_str()) != 0) {
    std::remove(part.c_str());
    throw std::runtime_error("cannot write " + path);
  }
}

}  // namespace wherry::bench
