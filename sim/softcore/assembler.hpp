// SPDX-License-Identifier: Apache-2.0
// A small assembler for RV32I: enough for a soft core's three firmwares, without a compiler. Encodings: The RISC-V
// Instruction Set Manual, volume I, 20191213, section 2.2 and chapter 24.
#pragma once

#include <cstdint>
#include <vector>

namespace wherry::sim::softcore {

/// x0 to x31.
enum class Register : std::uint32_t {};
[[nodiscard]] constexpr Register x(std::uint32_t number) noexcept { return Register{number}; }
inline constexpr Register kZero = x(0);

/// Appends instructions from address 0 on. The program runs at any place, since jumps are relative.
class Assembler {
 public:
  /// The offset of the next instruction, in bytes.
  [[nodiscard]] std::uint32_t here() const noexcept { return static_cast<std::uint32_t>(words_.size() * 4); }
  [[nodiscard]] const std::vector<std::uint32_t>& words() const noexcept { return words_; }

  /// Loads any 32 bits into a register, with two instructions.
  void load_immediate(Register to, std::uint32_t value) {
    const std::uint32_t low = value & 0xfff, high = (value + 0x800) >> 12;  // addi adds a signed number
    words_.push_back(high << 12 | at(to, 7) | 0x37);
    add_immediate(to, to, low < 0x800 ? static_cast<std::int32_t>(low) : static_cast<std::int32_t>(low) - 0x1000);
  }
  /// -2048 to 2047.
  void add_immediate(Register to, Register from, std::int32_t value) {
    words_.push_back(static_cast<std::uint32_t>(value) << 20 | at(from, 15) | at(to, 7) | 0x13);
  }
  void exclusive_or(Register to, Register a, Register b) {
    words_.push_back(at(b, 20) | at(a, 15) | 4U << 12 | at(to, 7) | 0x33);
  }
  void load_word(Register to, Register address) { words_.push_back(at(address, 15) | 2U << 12 | at(to, 7) | 0x03); }
  /// `offset`: 0 to 31.
  void store_word(Register from, Register address, std::uint32_t offset = 0) {
    words_.push_back(at(from, 20) | at(address, 15) | 2U << 12 | offset << 7 | 0x23);
  }
  void nop() { add_immediate(kZero, kZero, 0); }
  /// Targets are addresses within the program.
  void branch_if_equal(Register a, Register b, std::uint32_t target) { branch(0, a, b, target); }
  void branch_if_below(Register a, Register b, std::uint32_t target) { branch(6, a, b, target); }
  void jump(std::uint32_t target) {
    const std::uint32_t offset = target - here();
    words_.push_back((offset >> 20 & 1) << 31 | (offset >> 1 & 0x3ff) << 21 | (offset >> 11 & 1) << 20 |
                     (offset >> 12 & 0xff) << 12 | 0x6f);
  }
  /// An instruction of PicoRV32 alone (README, "waitirq"): stops until an interrupt is pending.
  void wait_for_interrupt() { words_.push_back(0x0800'000b); }

 private:
  static constexpr std::uint32_t at(Register number, unsigned bit) { return static_cast<std::uint32_t>(number) << bit; }
  void branch(std::uint32_t function, Register a, Register b, std::uint32_t target) {
    const std::uint32_t offset = target - here();
    words_.push_back((offset >> 12 & 1) << 31 | (offset >> 5 & 0x3f) << 25 | at(b, 20) | at(a, 15) | function << 12 |
                     (offset >> 1 & 0xf) << 8 | (offset >> 11 & 1) << 7 | 0x63);
  }

  std::vector<std::uint32_t> words_;
};

}  // namespace wherry::sim::softcore
