// SPDX-License-Identifier: Apache-2.0
#include "sim/shell/parameters.hpp"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <charconv>

namespace wherry::sim::shell {
namespace {

constexpr std::array kParameters{
    Parameter{"flight", &Parameters::flight, "cycles", "fitted",
              "one way over PCIe without the bits' own time: descriptor phases, Host-QDMA, QDMA-Host", 4, 1000},
    Parameter{"mps", &Parameters::mps, "bytes", "fitted", "PCIe's maximum payload: QDMA-Host", 128, 1024},
    Parameter{"mrrs", &Parameters::mrrs, "bytes", "fitted", "PCIe's maximum read request: QDMA of Table 5.6, write",
              128, 4096},
    Parameter{"completion", &Parameters::completion, "bytes", "fitted", "how the root cuts completions: Host-QDMA", 64,
              512},
    Parameter{"rx", &Parameters::rx, "cycles", "fitted", "packet adapter, network to card: CMAC of Tables 5.2, 5.4", 0,
              1000},
    Parameter{"tx", &Parameters::tx, "CMAC cycles", "fitted", "packet adapter, card to network: CMAC, the same", 0,
              1000},
    Parameter{"box", &Parameters::box, "cycles", "fitted", "the 250 MHz box: CMAC-QDMA and QDMA-CMAC", 0, 1000},
    Parameter{
        "second_store", &Parameters::second_store, "", "fitted",
        "a second whole-packet store, HBM to network: none (0), at 250 MHz (1), at 322 MHz (2): CMAC of Table 5.4", 0,
        2},
    Parameter{"h2c_stream", &Parameters::h2c_stream, "cycles", "fitted", "QDMA of Table 5.2, outgoing", 0, 1000},
    Parameter{"c2h_stream", &Parameters::c2h_stream, "cycles", "fitted", "QDMA of Table 5.2, incoming", 0, 1000},
    Parameter{"h2c_memory", &Parameters::h2c_memory, "cycles", "fitted", "QDMA of Table 5.6, write", 0, 1000},
    Parameter{"c2h_memory", &Parameters::c2h_memory, "cycles", "fitted", "QDMA of Table 5.6, read", 0, 1000},
    Parameter{"one_at_a_time", &Parameters::one_at_a_time, "", "chosen",
              "C2H opens a transaction when the host has the one before: chosen after the 4 KiB row of Table 5.5", 0,
              1},
    Parameter{"mover_write", &Parameters::mover_write, "cycles", "fitted", "DM of Table 5.4, write", 0, 1000},
    Parameter{"mover_read", &Parameters::mover_read, "cycles", "fitted", "DM of Table 5.4, read", 0, 1000},
    Parameter{"mover_read_route", &Parameters::mover_read_route, "cycles", "fitted",
              "what the DataMover's reads take more than QDMA's: DM-HBM of Table 5.4 less HBM-QDMA of Table 5.6", 0,
              1000},
    Parameter{"qdma_write_route", &Parameters::qdma_write_route, "cycles", "fitted",
              "what QDMA's writes take more than the DataMover's: QDMA-HBM of Table 5.6 less DM-HBM of Table 5.4", 0,
              1000},
    Parameter{"hbm_read", &Parameters::hbm_read, "cycles", "fitted", "HBM-QDMA of Table 5.6", 1, 1000},
    Parameter{"hbm_write", &Parameters::hbm_write, "cycles", "fitted", "DM-HBM of Table 5.4, write", 1, 1000},
    Parameter{"card_offset", &Parameters::card_offset, "bytes", "chosen",
              "where the card's buffer begins in a page: 4 KiB cross a boundary (section 5.5.2), 2 KiB do not", 0,
              4064},
    Parameter{"host_offset", &Parameters::host_offset, "bytes", "chosen",
              "where the host's buffer begins in a page: the same, elsewhere than the card's", 0, 4064},
};

bool fits(const Parameter& parameter, std::uint32_t value) {
  if (value < parameter.least || value > parameter.most) return false;
  const bool power = parameter.name == "mps" || parameter.name == "mrrs" || parameter.name == "completion";
  const bool offset = parameter.name == "card_offset" || parameter.name == "host_offset";
  return power ? std::has_single_bit(value) : !offset || value % 32 == 0;
}

}  // namespace

std::span<const Parameter> parameters() noexcept { return kParameters; }

Status set(Parameters& parameters, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  const std::string_view name = assignment.substr(0, equals);
  const std::string_view text = equals == std::string_view::npos ? "" : assignment.substr(equals + 1);
  for (const Parameter& parameter : kParameters) {
    if (parameter.name != name) continue;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() || !fits(parameter, value))
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{}: {} to {} is expected", assignment, parameter.least, parameter.most));
    parameters.*parameter.member = value;
    return ok_status();
  }
  std::string known;
  for (const Parameter& parameter : kParameters)
    known += fmt::format("{}{}", known.empty() ? "" : ", ", parameter.name);
  return Status(StatusCode::kInvalidArgument, fmt::format("{}: no such parameter; known are {}", name, known));
}

}  // namespace wherry::sim::shell
