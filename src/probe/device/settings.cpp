// SPDX-License-Identifier: Apache-2.0
#include "probe/device/settings.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

#include "base/settings.hpp"
#include "base/try.hpp"

namespace wherry::probe {
namespace {

Result<std::uint64_t> parse_amount(const std::string& text) {
  if (text.starts_with("0x") || text.starts_with("0X")) {
    std::uint64_t value = 0;
    const char* const last = text.data() + text.size();
    const auto read = std::from_chars(text.data() + 2, last, value, 16);
    if (read.ec == std::errc() && read.ptr == last) return value;
    return Status(StatusCode::kInvalidArgument, fmt::format("'{}' is not a number", text));
  }
  return parse_bytes(text);
}

}  // namespace

Result<Target> parse_target(const std::string& text) {
  const auto malformed = [&](const std::string& why) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("'{}': {}; want DEVICE:BASE+BYTES, for example xdma0:0x0+64MiB", text, why));
  };
  const std::size_t colon = text.rfind(':');
  const std::size_t plus = text.find('+', colon == std::string::npos ? 0 : colon);
  if (colon == std::string::npos || colon == 0 || plus == std::string::npos) return malformed("a part is missing");
  Target target;
  target.name = text.substr(0, colon);
  const auto base = parse_amount(text.substr(colon + 1, plus - colon - 1));
  const auto bytes = parse_amount(text.substr(plus + 1));
  if (!base) return malformed("BASE is not a number");
  if (!bytes || *bytes == 0) return malformed("BYTES is not a size");
  if (*bytes > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) - *base ||
      *base > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return malformed("the range ends beyond 2^63");
  target.base = *base;
  target.bytes = *bytes;
  return target;
}

DeviceSettings settings_from(const std::function<const char*(const char*)>& get) {
  DeviceSettings settings;
  const auto refuse = [&](const char* name, const std::string& why) { settings.refused[name] = why; };
  const auto target = [&](const char* name, std::optional<Target>& field) {
    const char* const text = get(name);
    if (text == nullptr || *text == '\0') return;
    auto parsed = parse_target(text);
    if (parsed)
      field = *std::move(parsed);
    else
      refuse(name, parsed.status().message());
  };
  const auto text = [&](const char* name, std::string& field) {
    if (const char* const value = get(name); value != nullptr) field = value;
  };
  text("WHERRY_PROBE_PCI", settings.pci);
  text("WHERRY_PROBE_VERBS", settings.verbs_device);
  target("WHERRY_PROBE_BAR", settings.bar);
  target("WHERRY_PROBE_IVSHMEM", settings.ivshmem);
  target("WHERRY_PROBE_XDMA", settings.xdma);
  target("WHERRY_PROBE_XDMA_USER", settings.xdma_user);
  target("WHERRY_PROBE_QDMA", settings.qdma);
  if (const char* const value = get("WHERRY_PROBE_CUDA"); value != nullptr && *value != '\0') {
    const auto number = parse_number(value, 0, 1023);
    if (number)
      settings.cuda_device = static_cast<int>(*number);
    else
      refuse("WHERRY_PROBE_CUDA", number.status().message());
  }
  return settings;
}

}  // namespace wherry::probe
