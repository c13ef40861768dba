// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/functions_card_testing.hpp"

#include <Vbypass_functions.h>
#include <fmt/core.h>
#include <verilated.h>

#include <algorithm>
#include <cstdlib>

#include "sim/axi_lite.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint64_t kResetCycles = 8;
/// More cycles than any access takes. After a reset, the register file is filled in 515 (bypass_registers.sv).
constexpr std::uint64_t kLongestAccess = 100'000;

}  // namespace

struct FunctionsCard::Pins {
  VerilatedContext context;
  std::unique_ptr<Vbypass_functions> card;
  AxiLiteManager<Vbypass_functions> registers;
};

FunctionsCard::FunctionsCard() : pins_(std::make_unique<Pins>()) {
  Verilated::threadContextp(&pins_->context);
  pins_->card = std::make_unique<Vbypass_functions>(&pins_->context);
  pins_->card->m_rx_tready = 1;  // nobody is elsewhere
  pins_->card->s_tx_tvalid = 0;
  pins_->card->rst_i = 1;
  for (std::uint64_t i = 0; i < kResetCycles; ++i) tick();
  pins_->card->rst_i = 0;
}

FunctionsCard::~FunctionsCard() {
  // To delete a model, the Verilator runtime uses the context of the deleting thread.
  Verilated::threadContextp(&pins_->context);
  pins_->card->final();
  pins_->card.reset();
}

void FunctionsCard::fail(const std::string& why) const {
  fmt::print(stderr, "bypass_functions, cycle {}: {}\n", now_, why);
  std::abort();
}

void FunctionsCard::tick() {
  Vbypass_functions& c = *pins_->card;
  Verilated::threadContextp(&pins_->context);
  pins_->context.time(now_);  // what messages show
  pins_->registers.drive(c);
  window_.drive(c, pauses_, now_);
  tails_.drive(c, pauses_);
  c.clk_i = 0;
  c.eval();  // what depends on inputs without a clock
  if (c.rst_i == 0) {
    pins_->registers.sample(c);
    if (const std::string broken = tails_.sample(c); !broken.empty()) fail(broken);
    bool moved = false;
    if (const std::string broken = window_.sample(c, moved); !broken.empty()) fail(broken);
  }
  c.clk_i = 1;
  c.eval();
  ++now_;
}

template <typename Condition>
void FunctionsCard::run_until(const char* what, const Condition& condition) {
  for (const std::uint64_t begin = now_; !condition(); tick())
    if (now_ - begin > kLongestAccess) fail(fmt::format("{} does not end", what));
}

std::uint32_t FunctionsCard::read_register(std::uint32_t offset) {
  pins_->registers.begin_read(*pins_->card, offset);
  run_until("a read of a register", [this] { return pins_->registers.ended(); });
  return pins_->registers.data();
}

void FunctionsCard::write_register(std::uint32_t offset, std::uint32_t value) {
  pins_->registers.begin_write(*pins_->card, offset, value);
  run_until("a write of a register", [this] { return pins_->registers.ended(); });
}

void FunctionsCard::write(std::uint32_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_write(offset, data.size());
    window_.post_write(burst, data.first(burst.bytes));
    run_until("a write", [this] { return window_.idle(); });
    offset += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

void FunctionsCard::read(std::uint32_t offset, std::span<std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_read(offset, data.size());
    window_.post_read(burst, 0);
    run_until("a read", [this] { return window_.answer().has_value(); });
    std::ranges::copy(window_.answer()->data, data.begin());
    window_.pop_answer();
    offset += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

}  // namespace wherry::sim
