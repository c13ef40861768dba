// SPDX-License-Identifier: Apache-2.0
#include "common/summary.hpp"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <utility>

namespace wherry::apps {
namespace {

using Json = nlohmann::ordered_json;

std::string value_text(const Json& value) {
  if (value.is_number_unsigned()) return grouped(value.get<std::uint64_t>());
  if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string counted(std::uint64_t number, const std::string& noun) {
  return fmt::format("{} {}{}", grouped(number), noun, number == 1 ? "" : "s");
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string rounded(double number) {
  constexpr std::array<std::pair<double, const char*>, 4> kSuffixes{
      {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
  for (const auto& [factor, suffix] : kSuffixes) {
    if (std::abs(number) < 0.9995 * factor) continue;  // 999,600 is 1.00 M
    const double part = number / factor;
    return fmt::format("{:.{}f}{}", part, part < 9.995 ? 2 : part < 99.95 ? 1 : 0, suffix);
  }
  return fmt::format("{:.3g}", number);
}

std::string summary(const Json& line, const Work& work) {
  const auto seconds = line.at("seconds").get<double>();
  std::string text = fmt::format("{}: ", line.at("app").get<std::string>());
  if (!work.many.empty()) text += fmt::format("{} {} in ", grouped(work.count), work.count == 1 ? work.one : work.many);
  text += fmt::format("{:.3g} s", seconds);
  if (!work.many.empty() && seconds > 0)
    text += fmt::format(": {} {} a second", rounded(static_cast<double>(work.count) / seconds), work.many);
  text += fmt::format("\n  {} on {}, placement {}: {}, {}B\n", counted(line.at("ranks").get<std::uint64_t>(), "rank"),
                      counted(line.at("nodes").get<std::uint64_t>(), "node"), line.at("placement").get<std::string>(),
                      counted(line.at("messages").get<std::uint64_t>(), "message"),
                      rounded(line.at("bytes").get<double>()));
  std::string results;
  bool own = false;
  for (const auto& [name, value] : line.items()) {
    if (name == "statistics") break;
    if (own && name != work.many && !name.ends_with("_per_second"))
      results += fmt::format("{} {}, ", name, value_text(value));
    own = own || name == "bytes";
  }
  return text + fmt::format("  {}checksum {}\n", results, line.at("checksum").get<std::string>());
}

}  // namespace wherry::apps
