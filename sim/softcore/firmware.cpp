// SPDX-License-Identifier: Apache-2.0
#include "sim/softcore/firmware.hpp"

#include "sim/softcore/assembler.hpp"

namespace wherry::sim::softcore {

std::vector<std::uint32_t> idle_firmware() {
  Assembler code;
  code.wait_for_interrupt();
  code.jump(0);
  return code.words();
}

std::vector<std::uint32_t> nop_firmware() {
  Assembler code;
  for (unsigned i = 0; i < 64; ++i) code.nop();
  code.jump(0);
  return code.words();
}

std::vector<std::uint32_t> memory_test_firmware(std::uint32_t address, std::uint32_t bytes, std::int32_t stride) {
  const Register first = x(5), end = x(6), at = x(7), value = x(8), round = x(9), wrong = x(10), report = x(11),
                 found = x(12);
  Assembler code;
  code.load_immediate(first, kCardBase + address);
  code.load_immediate(end, kCardBase + address + bytes);
  code.load_immediate(report, kReport);
  code.add_immediate(round, kZero, 0);
  code.add_immediate(wrong, kZero, 0);

  const std::uint32_t next_round = code.here();
  code.add_immediate(at, first, 0);
  const std::uint32_t write = code.here();
  code.exclusive_or(value, at, round);
  code.store_word(value, at);
  code.add_immediate(at, at, stride);
  code.branch_if_below(at, end, write);

  code.add_immediate(at, first, 0);
  const std::uint32_t read = code.here();
  code.exclusive_or(value, at, round);
  code.load_word(found, at);
  code.branch_if_equal(found, value, code.here() + 8);
  code.add_immediate(wrong, wrong, 1);
  code.add_immediate(at, at, stride);
  code.branch_if_below(at, end, read);

  code.add_immediate(round, round, 1);
  code.store_word(round, report);
  code.store_word(wrong, report, 4);
  code.jump(next_round);
  return code.words();
}

}  // namespace wherry::sim::softcore
