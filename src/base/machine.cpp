// SPDX-License-Identifier: Apache-2.0
#include "base/machine.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <string_view>

#include "base/text_file.hpp"

namespace wherry {
namespace {

/// "model name" of the first core; not all architectures have one.
std::string cpu_name(const std::string& root, const std::string& architecture) {
  const auto text = read_text_file(root + "/proc/cpuinfo", "the list of CPUs", std::size_t{16} << 20);
  if (!text) return architecture;
  constexpr std::string_view kName = "model name";
  const std::size_t begin = text->find(kName);
  if (begin == std::string::npos) return architecture;
  const std::size_t end = text->find('\n', begin);
  const std::string_view line = std::string_view(*text).substr(begin, end - begin);
  const std::size_t value = line.find_first_not_of(": \t", kName.size());
  return value == std::string_view::npos ? architecture : std::string(line.substr(value));
}

}  // namespace

MachineKey this_machine(const std::string& root) {
  utsname name{};
  (void)uname(&name);
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  return {.cpu = cpu_name(root, static_cast<const char*>(name.machine)),
          .kernel = static_cast<const char*>(name.release),
          .cores = cores > 0 ? static_cast<unsigned>(cores) : 0};
}

std::string to_string(const MachineKey& machine) {
  return fmt::format("{} | {} cores | Linux {}", machine.cpu, machine.cores, machine.kernel);
}

}  // namespace wherry
