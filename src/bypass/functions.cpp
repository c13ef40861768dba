// SPDX-License-Identifier: Apache-2.0
#include "bypass/functions.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/try.hpp"
#include "bypass/generated/functions_registers.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;
namespace functions_reg = bypass_functions::registers;

constexpr auto kBuildLimit = 100ms;  // of the filter's table: 8192 cycles are 33 us
constexpr std::array<std::string_view, 7> kNames{"none",      "echo",    "reflect",  "filter",
                                                 "generator", "checker", "elsewhere"};

// register `receive`, .stream
constexpr std::uint32_t kToNobody = 0, kToEcho = 1, kToChecker = 2, kToElsewhere = 3;

// Offsets of the first byte of header fields of Ethernet, ARP and IPv4 (IEEE 802.3, RFC 826, 791, 768).
constexpr std::size_t kAtType = 12, kAtIp = 14, kAtFragment = 20, kAtProtocol = 23, kAtPort = 36;
constexpr std::uint16_t kEthertypeIpv4 = 0x0800, kEthertypeArp = 0x0806;
/// The Ethertype for local experiments (IEEE 802, 9.2.4), so that no other host answers a generated frame.
constexpr std::uint16_t kExperimental = 0x88B5;
constexpr std::uint8_t kNoOptions = 0x45, kIcmp = 1, kTcp = 6, kUdp = 17;
constexpr std::uint32_t kShortestGenerated = 60, kLongestGenerated = 9728;

struct FunctionCounter {
  std::string_view name;
  std::uint32_t offset;
};
constexpr std::array kFunctionCounters{
    FunctionCounter{"echo_arp", functions_reg::kEchoArpOffset},
    FunctionCounter{"echo_icmp", functions_reg::kEchoIcmpOffset},
    FunctionCounter{"echo_udp", functions_reg::kEchoUdpOffset},
    FunctionCounter{"echo_fragments", functions_reg::kEchoFragmentsOffset},
    FunctionCounter{"echo_reflected", functions_reg::kEchoReflectedOffset},
    FunctionCounter{"echo_other", functions_reg::kEchoOtherOffset},
    FunctionCounter{"echo_malformed", functions_reg::kEchoMalformedOffset},
    FunctionCounter{"as_they_are", functions_reg::kAsTheyAreOffset},
    FunctionCounter{"filter_missed", functions_reg::kFilterMissedOffset},
    FunctionCounter{"discarded", functions_reg::kDiscardedOffset},
};
/// Counters of generator and checker. A card without these two functions does not have them.
constexpr std::array kCheckCounters{
    FunctionCounter{"generated", functions_reg::kGeneratedOffset},
    FunctionCounter{"generator_behind", functions_reg::kGeneratorBehindOffset},
    FunctionCounter{"checked", functions_reg::kCheckedOffset},
    FunctionCounter{"check_foreign", functions_reg::kCheckForeignOffset},
    FunctionCounter{"check_skipped", functions_reg::kCheckSkippedOffset},
    FunctionCounter{"check_late", functions_reg::kCheckLateOffset},
    FunctionCounter{"check_duplicates", functions_reg::kCheckDuplicatesOffset},
    FunctionCounter{"check_wrong", functions_reg::kCheckWrongOffset},
    FunctionCounter{"latency_least", functions_reg::kLatencyLeastOffset},
    FunctionCounter{"latency_most", functions_reg::kLatencyMostOffset},
};

template <typename Number>
std::optional<Number> number_of(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the text before the separator. The rest stays in `text`.
std::string_view next_part(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return part;
}

void compare(FilterRule& rule, std::size_t at, std::uint8_t value, std::uint8_t mask = 0xFF) {
  rule.match.at(at) = value;
  rule.mask.at(at) = mask;
}

void compare_word(FilterRule& rule, std::size_t at, std::uint16_t value) {
  compare(rule, at, static_cast<std::uint8_t>(value >> 8));
  compare(rule, at + 1, static_cast<std::uint8_t>(value));
}

/// Packs a frame's bytes as the registers hold them: four per word, the first byte in the lowest bits.
std::uint32_t word_of(const std::uint8_t* bytes) {
  return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 | std::uint32_t{bytes[3]} << 24;
}

std::uint32_t control_of(const FunctionSetup& setup) {
  if (setup.function == Function::kEcho)
    return functions_reg::kEchoControlUdpPort.set(functions_reg::kEchoControlArp.mask() |
                                                      functions_reg::kEchoControlIcmp.mask() |
                                                      functions_reg::kEchoControlUdp.mask(),
                                                  setup.udp_port);
  const bool back = setup.function == Function::kReflect || setup.function == Function::kFilter;
  return back ? functions_reg::kEchoControlReflect.mask() : 0;
}

std::uint32_t receive_of(Function function, bool in_place) {
  const auto stream = [&] {
    switch (function) {
      case Function::kNone:
        return kToNobody;
      case Function::kEcho:
      case Function::kReflect:
      case Function::kFilter:
        return kToEcho;
      case Function::kGenerator:
      case Function::kChecker:
        return kToChecker;
      case Function::kElsewhere:
        return kToElsewhere;
    }
    return kToNobody;
  }();
  return functions_reg::kReceiveInPlace.set(functions_reg::kReceiveStream.set(0, stream),
                                            in_place && stream == kToEcho ? 1 : 0);
}

}  // namespace

std::string_view name_of(Function function) noexcept { return kNames.at(static_cast<std::size_t>(function)); }

std::vector<std::string> function_names() { return {kNames.begin(), kNames.end()}; }

std::optional<Function> function_of(std::string_view name) noexcept {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Function>(found - kNames.begin());
}

Result<FilterRule> parse_filter_rule(std::string_view text) {
  const auto wrong = [whole = std::string(text)] {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("'{}' is not a rule: want pass or drop, then all, arp, ip, icmp, tcp or udp, as in "
                              "pass:icmp or drop:udp:53",
                              whole));
  };
  FilterRule rule;
  const std::string_view action = next_part(text, ':'), what = next_part(text, ':');
  if (action != "pass" && action != "drop") return wrong();
  rule.pass = action == "pass";
  const bool has_port = !text.empty();
  if (what == "arp") {
    compare_word(rule, kAtType, kEthertypeArp);
  } else if (what == "ip") {
    compare_word(rule, kAtType, kEthertypeIpv4);
  } else if (what == "icmp" || what == "tcp" || what == "udp") {
    compare_word(rule, kAtType, kEthertypeIpv4);
    compare(rule, kAtIp, kNoOptions);
    compare(rule, kAtProtocol, what == "icmp" ? kIcmp : what == "tcp" ? kTcp : kUdp);
  } else if (what != "all") {
    return wrong();
  }
  if (!has_port) return rule;
  const auto port = number_of<std::uint16_t>(text, 10);
  if ((what != "tcp" && what != "udp") || !port) return wrong();
  compare(rule, kAtFragment, 0, 0x1F);  // a later fragment has no port
  compare(rule, kAtFragment + 1, 0);
  compare_word(rule, kAtPort, *port);
  return rule;
}

Result<EthernetAddress> parse_ethernet_address(std::string_view text) {
  EthernetAddress address{};
  std::string_view rest = text;
  for (std::uint8_t& byte : address) {
    const std::string_view part = next_part(rest, ':');
    const auto value = number_of<std::uint8_t>(part, 16);
    if (part.size() != 2 || !value)
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("'{}' is not an Ethernet address: want one as 02:00:00:00:00:01", text));
    byte = *value;
  }
  if (!rest.empty() || text.ends_with(':'))
    return Status(StatusCode::kInvalidArgument, fmt::format("'{}' is too long for an Ethernet address", text));
  return address;
}

Result<std::uint32_t> parse_ipv4_address(std::string_view text) {
  std::uint32_t address = 0;
  std::string_view rest = text;
  for (int i = 0; i < 4; ++i) {
    const auto value = number_of<std::uint8_t>(next_part(rest, '.'), 10);
    if (!value || (i == 3 && (!rest.empty() || text.ends_with('.'))))
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("'{}' is not an IPv4 address: want one as 10.0.0.2", text));
    address = address << 8 | *value;
  }
  return address;
}

Status check_function(const FunctionSetup& setup, bool in_place) {
  const auto wrong = [](std::string message) { return Status(StatusCode::kInvalidArgument, std::move(message)); };
  const std::string_view name = name_of(setup.function);
  if (setup.function == Function::kEcho && !setup.ip) return wrong("echo needs the address that it answers for: --ip");
  if (setup.function == Function::kFilter && setup.rules.empty())
    return wrong("filter needs a rule: --rule, as in pass:icmp");
  if (setup.function != Function::kFilter && !setup.rules.empty())
    return wrong(fmt::format("{} has no rules: they are for filter", name));
  if (setup.function == Function::kGenerator) {
    if (setup.generator.to == EthernetAddress{})
      return wrong("the generator needs an Ethernet address to send to: --to");
    if (setup.generator.bytes < kShortestGenerated || setup.generator.bytes > kLongestGenerated)
      return wrong(fmt::format("generated frames of {} bytes: want {} to {}", setup.generator.bytes, kShortestGenerated,
                               kLongestGenerated));
  }
  const std::uint32_t stream = functions_reg::kReceiveStream.get(receive_of(setup.function, false));
  if (in_place && (stream == kToChecker || stream == kToElsewhere))
    return wrong(fmt::format("{} wants whole frames, of which it gets the first 64 bytes with --in-place", name));
  return {};
}

Result<Functions> Functions::open(CardAccess& access) {
  Functions functions(access);
  const std::uint32_t id = functions.read(functions_reg::kIdOffset);
  if (id == ~std::uint32_t{0}) return Status(StatusCode::kUnavailable, "the card does not answer");
  if (id != functions_reg::kIdReset)
    return Status(StatusCode::kNotFound,
                  fmt::format("the card has no functions behind its core: register {:#x} reads {:#010x}, want {:#010x}",
                              kFunctionRegisters, id, functions_reg::kIdReset));
  const std::uint32_t major =
      functions_reg::kFunctionsVersionMajor.get(functions.read(functions_reg::kFunctionsVersionOffset));
  if (const std::uint32_t want = functions_reg::kFunctionsVersionMajor.get(functions_reg::kFunctionsVersionReset);
      major != want)
    return Status(
        StatusCode::kVersionMismatch,
        fmt::format("the registers of the card's functions have version {}, this program knows {}", major, want));
  const std::uint32_t capability = functions.read(functions_reg::kCapabilityOffset);
  functions.rules_ = functions_reg::kCapabilityRules.get(capability);
  functions.has_generator_ = functions_reg::kCapabilityGenerator.get(capability) != 0;
  return functions;
}

/// Writes a word and reads it back. Reserved bits must be 0.
Status Functions::write(std::uint32_t offset, std::uint32_t value) {
  access_->write(kFunctionRegisters + offset, value);
  if (const std::uint32_t back = read(offset); back != value)
    return {StatusCode::kUnavailable, fmt::format("the card does not take register {:#x}: wrote {:#x}, reads {:#x}",
                                                  kFunctionRegisters + offset, value, back)};
  return {};
}

Status Functions::configure(const FunctionSetup& setup, const EthernetAddress& mac, bool in_place) {
  WHERRY_TRY(check_function(setup, in_place));
  const auto missing = [](const std::string& what) {
    return Status(StatusCode::kUnsupported, fmt::format("the card's bitstream has {}", what));
  };
  if (setup.rules.size() > rules_)
    return missing(rules_ == 0 ? std::string("no filter")
                               : fmt::format("a filter of {} rules, want {}", rules_, setup.rules.size()));
  const bool checks = setup.function == Function::kGenerator || setup.function == Function::kChecker;
  if (checks && !has_generator_) return missing("neither generator nor checker");

  WHERRY_TRY(stop());
  const std::uint32_t low = std::uint32_t{mac[2]} << 24 | mac[3] << 16 | mac[4] << 8 | mac[5];
  WHERRY_TRY(write(functions_reg::kEchoMacLowOffset, low));
  WHERRY_TRY(write(functions_reg::kEchoMacHighOffset, std::uint32_t{mac[0]} << 8 | mac[1]));
  WHERRY_TRY(write(functions_reg::kEchoIpOffset, setup.ip.value_or(0)));
  WHERRY_TRY(write(functions_reg::kEchoControlOffset, control_of(setup)));
  WHERRY_TRY(write_rules(setup.rules));
  generator_ = 0;
  if (setup.function == Function::kGenerator) WHERRY_TRY(write_generator(setup.generator, mac));
  if (setup.function == Function::kGenerator) generator_ = functions_reg::kGeneratorEnable.set(0, 1);
  access_->write(kFunctionRegisters + functions_reg::kControlOffset, functions_reg::kControlClearCounters.set(0, 1));
  receive_ = receive_of(setup.function, in_place);
  return {};
}

Status Functions::write_rules(const std::vector<FilterRule>& rules) {
  if (rules_ == 0) return {};
  for (std::uint32_t i = 0; i < rules_; ++i) WHERRY_TRY(write(functions_reg::filter_rule_offset(i), 0));
  WHERRY_TRY(
      write(functions_reg::kFilterDefaultOffset, functions_reg::kFilterDefaultDrop.set(0, rules.empty() ? 0 : 1)));
  if (rules.empty()) return {};
  constexpr std::uint32_t kWords = kFilteredBytes / 4;
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    for (std::uint32_t word = 0; word < kWords; ++word) {
      WHERRY_TRY(write(functions_reg::filter_match_offset(kWords * i + word),
                       word_of(&rules[i].match.at(std::size_t{4} * word))));
      WHERRY_TRY(write(functions_reg::filter_mask_offset(kWords * i + word),
                       word_of(&rules[i].mask.at(std::size_t{4} * word))));
    }
  }
  access_->write(kFunctionRegisters + functions_reg::kControlOffset, functions_reg::kControlBuildFilter.set(0, 1));
  for (auto waited = 0us; functions_reg::kFilterStateBuilding.get(read(functions_reg::kFilterStateOffset)) != 0;
       waited += 100us) {
    if (waited >= kBuildLimit) return {StatusCode::kUnavailable, "the card does not come to an end with its filter"};
    access_->pause(100us);
  }
  for (std::uint32_t i = 0; i < rules.size(); ++i)
    WHERRY_TRY(
        write(functions_reg::filter_rule_offset(i),
              functions_reg::kFilterRuleDrop.set(functions_reg::kFilterRuleEnable.set(0, 1), rules[i].pass ? 0 : 1)));
  return {};
}

Status Functions::write_generator(const GeneratorSetup& setup, const EthernetAddress& mac) {
  std::array<std::uint8_t, std::size_t{4} * functions_reg::kGeneratorHeaderCount> header{};
  std::ranges::copy(setup.to, header.begin());
  std::ranges::copy(mac, header.begin() + setup.to.size());
  header.at(kAtType) = kExperimental >> 8;
  header.at(kAtType + 1) = kExperimental & 0xFF;
  for (std::uint32_t word = 0; word < functions_reg::kGeneratorHeaderCount; ++word)
    WHERRY_TRY(write(functions_reg::generator_header_offset(word), word_of(&header.at(std::size_t{4} * word))));
  WHERRY_TRY(write(functions_reg::kGeneratorBytesOffset, setup.bytes));
  WHERRY_TRY(write(functions_reg::kGeneratorIntervalOffset, setup.interval));
  return write(functions_reg::kGeneratorCountOffset, setup.count);
}

Status Functions::start() {
  WHERRY_TRY(write(functions_reg::kReceiveOffset, receive_));
  return write(functions_reg::kGeneratorOffset, generator_);
}

Status Functions::stop() {
  WHERRY_TRY(write(functions_reg::kGeneratorOffset, 0));
  return write(functions_reg::kReceiveOffset, 0);
}

Function Functions::running() const {
  if (has_generator_ && functions_reg::kGeneratorEnable.get(read(functions_reg::kGeneratorOffset)) != 0)
    return Function::kGenerator;
  switch (functions_reg::kReceiveStream.get(read(functions_reg::kReceiveOffset))) {
    case kToEcho:
      break;
    case kToChecker:
      return Function::kChecker;
    case kToElsewhere:
      return Function::kElsewhere;
    default:
      return Function::kNone;
  }
  for (std::uint32_t i = 0; i < rules_; ++i)
    if (functions_reg::kFilterRuleEnable.get(read(functions_reg::filter_rule_offset(i))) != 0) return Function::kFilter;
  const bool reflects = functions_reg::kEchoControlReflect.get(read(functions_reg::kEchoControlOffset)) != 0;
  return reflects ? Function::kReflect : Function::kEcho;
}

std::vector<std::pair<std::string, std::uint64_t>> Functions::counters() const {
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const FunctionCounter& one : kFunctionCounters) found.emplace_back(one.name, read(one.offset));
  for (std::uint32_t i = 0; i < rules_; ++i)
    found.emplace_back(fmt::format("filter_hits[{}]", i), read(functions_reg::filter_hits_offset(i)));
  if (!has_generator_) return found;
  for (const FunctionCounter& one : kCheckCounters) found.emplace_back(one.name, read(one.offset));
  const std::uint64_t low = read(functions_reg::latency_sum_offset(0));  // latches the high word
  found.emplace_back("latency_sum", low | std::uint64_t{read(functions_reg::latency_sum_offset(1))} << 32);
  return found;
}

}  // namespace wherry::bypass
