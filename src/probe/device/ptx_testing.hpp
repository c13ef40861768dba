// SPDX-License-Identifier: Apache-2.0
// For tests: executes PTX as in NVIDIA's "PTX ISA", one thread after
// another. It supports only the instructions that a copy kernel needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace wherry::probe::testing_support {

/// Returns a kernel's memory at an address, or null if there is none.
using PtxMemory = std::function<std::byte*(std::uint64_t address, std::size_t bytes)>;

class PtxKernel {
 public:
  /// Parses the entry `name`. error() is empty if the entry exists, with its parameters and labels.
  PtxKernel(const std::string& text, const std::string& name);
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] std::size_t parameters() const noexcept { return parameters_.size(); }
  /// Returns a CUresult: 0, 700 (illegal address), 716 (misaligned address), 715 (unknown instruction).
  [[nodiscard]] int run(unsigned blocks, unsigned threads, const std::vector<std::uint64_t>& arguments,
                        const PtxMemory& memory) const;

 private:
  struct Instruction {
    std::string guard, opcode;
    std::vector<std::string> operands;
  };
  using Registers = std::map<std::string, std::uint64_t>;
  int access(const Instruction& instruction, Registers& registers, const PtxMemory& memory) const;
  std::vector<Instruction> code_;
  std::map<std::string, std::size_t> labels_, parameters_;
  std::string error_;
};

}  // namespace wherry::probe::testing_support
