// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/socket.hpp"

namespace wherry {

std::string Setting::flag() const {
  std::string text = "--" + name;
  std::replace(text.begin(), text.end(), '_', '-');
  return text;
}

std::string Setting::environment() const {
  std::string text = "WHERRY_" + name;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

Status bad_setting(const std::string& key, const std::string& value, const std::string& allowed) {
  return {StatusCode::kInvalidArgument, fmt::format("{} = '{}': {}", key, value, allowed)};
}

Result<std::uint64_t> parse_bytes(const std::string& text) {
  struct Unit {
    std::string_view name;
    std::uint64_t factor;
  };
  static constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                                {"B", 1},
                                                {"KiB", 1ULL << 10},
                                                {"MiB", 1ULL << 20},
                                                {"GiB", 1ULL << 30},
                                                {"TiB", 1ULL << 40},
                                                {"KB", 1000},
                                                {"MB", 1000'000},
                                                {"GB", 1000'000'000},
                                                {"TB", 1000'000'000'000}}};
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& u : kUnits) {
    if (error == std::errc() && unit == u.name && value <= (std::uint64_t{1} << 60) / u.factor) return value * u.factor;
  }
  return Status(StatusCode::kInvalidArgument, "want bytes, as 1048576, 512MiB or 2GiB");
}

Result<std::uint64_t> parse_number(const std::string& text, std::uint64_t min, std::uint64_t max) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max)
    return Status(StatusCode::kInvalidArgument, fmt::format("want a whole number from {} to {}", min, max));
  return value;
}

namespace {

/// A row for a number field whose text `parse` reads.
template <typename Parse>
Setting numeric(std::string key, std::string name, std::uint64_t& field, std::string help, Parse parse) {
  auto set = [key, &field, parse](const std::string& text) -> Status {
    const Result<std::uint64_t> value = parse(text);
    if (!value) return bad_setting(key, text, value.status().message());
    field = *value;
    return ok_status();
  };
  return {std::move(key),  std::move(name),
          std::move(help), [&field] { return fmt::format("{}", field); },
          std::move(set),  false};
}

}  // namespace

Setting bytes_setting(std::string key, std::string name, std::uint64_t& field, std::string help) {
  return numeric(std::move(key), std::move(name), field, std::move(help), parse_bytes);
}

Setting number_setting(std::string key, std::string name, std::uint64_t& field, std::uint64_t min, std::uint64_t max,
                       std::string help) {
  return numeric(std::move(key), std::move(name), field, std::move(help),
                 [min, max](const std::string& text) { return parse_number(text, min, max); });
}

Setting text_setting(std::string key, std::string name, std::string& field, std::string help) {
  return {std::move(key),
          std::move(name),
          std::move(help),
          [&field] { return field; },
          [&field](const std::string& text) { return field = text, ok_status(); },
          true};
}

Setting address_setting(std::string key, std::string name, std::string& field, std::string help) {
  auto set = [key, &field](const std::string& text) -> Status {
    if (text != "off" && !parse_host_port(text))
      return bad_setting(key, text, "want host:port (port 0: any free one) or 'off'");
    field = text;
    return ok_status();
  };
  return {std::move(key), std::move(name), std::move(help), [&field] { return field; }, std::move(set), true};
}

Setting switch_setting(std::string key, std::string name, bool& field, std::string help) {
  auto set = [key, &field](const std::string& text) -> Status {
    if (text != "true" && text != "false") return bad_setting(key, text, "want true or false");
    field = text == "true";
    return ok_status();
  };
  return {std::move(key),  std::move(name),
          std::move(help), [&field] { return std::string(field ? "true" : "false"); },
          std::move(set),  false};
}

}  // namespace wherry
