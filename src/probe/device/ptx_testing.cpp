// SPDX-License-Identifier: Apache-2.0
#include "probe/device/ptx_testing.hpp"

#include <cstring>
#include <sstream>

namespace wherry::probe::testing_support {
namespace {

constexpr int kIllegalAddress = 700, kIllegalInstruction = 715, kMisalignedAddress = 716;
constexpr std::size_t kMostSteps = 10'000'000;  // of one thread: more is an endless loop

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\n"), last = text.find_last_not_of(" \t\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// Splits at commas outside braces.
std::vector<std::string> operands_of(const std::string& text) {
  std::vector<std::string> found;
  std::string part;
  int depth = 0;
  for (const char c : text) {
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c == ',' && depth == 0) {
      found.push_back(trimmed(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trimmed(part).empty()) found.push_back(trimmed(part));
  return found;
}

std::string inside(const std::string& text) { return trimmed(text.substr(1, text.size() - 2)); }

}  // namespace

PtxKernel::PtxKernel(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::string all, line;
  bool version = false, target = false, wide = false;
  while (std::getline(lines, line)) {
    line = trimmed(line.substr(0, line.find("//")));
    version = version || line.starts_with(".version ");
    target = target || line.starts_with(".target sm_");
    wide = wide || line == ".address_size 64";
    if (!line.starts_with(".version") && !line.starts_with(".target") && !line.starts_with(".address_size"))
      all += line + "\n";
  }
  const std::string entry = ".visible .entry " + name + "(";
  const std::size_t begin = all.find(entry), open = all.find("{\n", begin);
  if (!version || !target || !wide)
    error_ = "the module lacks .version, .target or .address_size 64";
  else if (begin == std::string::npos || open == std::string::npos)
    error_ = "the module has no entry " + name;
  if (!error_.empty()) return;
  const std::size_t close = all.find(')', begin);
  for (const std::string& parameter : operands_of(all.substr(begin + entry.size(), close - begin - entry.size()))) {
    if (!parameter.starts_with(".param .u64 ")) error_ = "a parameter is not .u64: " + parameter;
    const std::size_t index = parameters_.size();
    parameters_["[" + trimmed(parameter.substr(12)) + "]"] = index;
  }
  std::istringstream body(all.substr(open + 2, all.rfind('}') - open - 2));
  while (std::getline(body, line)) {
    line = trimmed(line);
    if (line.empty() || line.starts_with(".reg")) continue;
    if (line.back() == ':') {
      labels_[line.substr(0, line.size() - 1)] = code_.size();
      continue;
    }
    if (line.back() != ';') error_ = "no ';' behind " + line;
    line.pop_back();
    Instruction instruction;
    if (line.starts_with('@')) {
      const std::size_t space = line.find(' ');
      instruction.guard = line.substr(1, space - 1);
      line = trimmed(line.substr(space));
    }
    const std::size_t space = line.find(' ');
    instruction.opcode = line.substr(0, space);
    if (space != std::string::npos) instruction.operands = operands_of(line.substr(space));
    code_.push_back(instruction);
  }
}

int PtxKernel::access(const Instruction& instruction, Registers& registers, const PtxMemory& memory) const {
  const std::string& opcode = instruction.opcode;
  const bool load = opcode.starts_with("ld.");
  const std::string& place = instruction.operands.at(load ? 1 : 0);
  const std::string& value = instruction.operands.at(load ? 0 : 1);
  const std::uint64_t address = registers.at(inside(place));
  const std::size_t each = opcode.ends_with(".u8") ? 1 : 4;
  const std::vector<std::string> names =
      opcode.find(".v4.") != std::string::npos ? operands_of(inside(value)) : std::vector{value};
  if (address % (each * names.size()) != 0) return kMisalignedAddress;
  std::byte* const at = memory(address, each * names.size());
  if (at == nullptr) return kIllegalAddress;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (load) {
      registers[names[i]] = 0;
      std::memcpy(&registers[names[i]], at + i * each, each);
    } else {
      std::memcpy(at + i * each, &registers.at(names[i]), each);
    }
  }
  return 0;
}

int PtxKernel::run(unsigned blocks, unsigned threads, const std::vector<std::uint64_t>& arguments,
                   const PtxMemory& memory) const {
  for (std::uint64_t thread = 0; thread < std::uint64_t{blocks} * threads; ++thread) {
    Registers registers{
        {"%ctaid.x", thread / threads}, {"%tid.x", thread % threads}, {"%ntid.x", threads}, {"%nctaid.x", blocks}};
    const auto value = [&](const std::string& operand) {
      return operand.front() == '%' ? registers.at(operand) : std::stoull(operand);
    };
    std::size_t at = 0;
    for (std::size_t steps = 0;; ++steps) {
      if (at >= code_.size() || steps > kMostSteps) return kIllegalInstruction;
      const Instruction& instruction = code_[at++];
      const auto& [guard, opcode, operands] = instruction;
      if (!guard.empty() && registers.at(guard) == 0) continue;
      if (opcode == "ret") break;
      if (opcode == "bra")
        at = labels_.at(operands.at(0));
      else if (opcode == "ld.param.u64")
        registers[operands.at(0)] = arguments.at(parameters_.at(operands.at(1)));
      else if (opcode == "cvta.to.global.u64" || opcode == "mov.u64")
        registers[operands.at(0)] = value(operands.at(1));
      else if (opcode == "mov.u32" || opcode == "cvt.u64.u32")
        registers[operands.at(0)] = value(operands.at(1)) & 0xFFFF'FFFFU;
      else if (opcode == "mul.wide.u32")
        registers[operands.at(0)] = (value(operands.at(1)) & 0xFFFF'FFFFU) * (value(operands.at(2)) & 0xFFFF'FFFFU);
      else if (opcode == "add.u64")
        registers[operands.at(0)] = value(operands.at(1)) + value(operands.at(2));
      else if (opcode == "shr.u64")
        registers[operands.at(0)] = value(operands.at(1)) >> value(operands.at(2));
      else if (opcode == "shl.b64")
        registers[operands.at(0)] = value(operands.at(1)) << value(operands.at(2));
      else if (opcode == "setp.ge.u64")
        registers[operands.at(0)] = value(operands.at(1)) >= value(operands.at(2)) ? 1 : 0;
      else if (opcode.starts_with("ld.global") || opcode.starts_with("st.global")) {
        if (const int result = access(instruction, registers, memory); result != 0) return result;
      } else
        return kIllegalInstruction;
    }
  }
  return 0;
}

}  // namespace wherry::probe::testing_support
