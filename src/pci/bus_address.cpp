// SPDX-License-Identifier: Apache-2.0
#include "pci/bus_address.hpp"

#include <fmt/core.h>

#include <charconv>
#include <optional>

namespace wherry::pci {
namespace {

/// Exactly `digits` hexadecimal digits (or, with `more`, at least that many) up to the end of the text.
std::optional<std::uint32_t> hexadecimal(std::string_view text, std::size_t digits, bool more = false) {
  if (text.size() < digits || (!more && text.size() != digits) || text.size() > 8) return std::nullopt;
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string BusAddress::text() const { return fmt::format("{:04x}:{:02x}:{:02x}.{}", domain, bus, device, function); }

Result<BusAddress> parse_bus_address(std::string_view text) {
  const Status wrong(StatusCode::kInvalidArgument,
                     fmt::format("'{}' is not the address of a PCI function: want 0000:03:00.0 or 03:00.0", text));
  std::string_view rest = text;
  std::optional<std::uint32_t> domain = 0;
  if (const auto colon = rest.find(':'); colon != rest.rfind(':')) {
    domain = hexadecimal(rest.substr(0, colon), 4, true);  // five digits and more: VMD, Hyper-V
    rest.remove_prefix(colon + 1);
  }
  if (rest.size() != 7 || rest[2] != ':' || rest[5] != '.') return wrong;
  const auto bus = hexadecimal(rest.substr(0, 2), 2), device = hexadecimal(rest.substr(3, 2), 2),
             function = hexadecimal(rest.substr(6, 1), 1);
  if (!domain || !bus || !device || !function || *device > 31 || *function > 7) return wrong;
  return BusAddress{.domain = *domain,
                    .bus = static_cast<std::uint8_t>(*bus),
                    .device = static_cast<std::uint8_t>(*device),
                    .function = static_cast<std::uint8_t>(*function)};
}

}  // namespace wherry::pci
