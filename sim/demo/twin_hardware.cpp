// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/try.hpp"
#include "sim/bypass/twin.hpp"
#include "sim/demo/function.hpp"
#include "sim/demo/hardware.hpp"

namespace wherry::sim {
namespace {

class TwinHardware final : public DemoHardware {
 public:
  TwinHardware(const kv::Endpoint& self, std::function<CardSetup()> setup)
      : setup_(std::move(setup)), function_(self) {}

  void write(std::uint32_t offset, std::span<const std::byte> data) override { twin_.write(offset, data); }
  void read(std::uint32_t offset, std::span<std::byte> data) override { twin_.read(offset, data); }
  std::optional<TailWrite> next_tail() override { return twin_.next_tail(); }
  void tick() override { twin_.tick(); }

  std::uint32_t read_register(std::uint32_t offset) override {
    return offset < kKvRegisters ? ~0U : function_.registers().read(offset - kKvRegisters);
  }
  void write_register(std::uint32_t offset, std::uint32_t value) override {
    if (offset >= kKvRegisters) function_.registers().write(offset - kKvRegisters, value);
  }
  Status run(bool on) override {
    if (!on) {
      twin_.stop(0);
      return {};
    }
    WHERRY_TRY(twin_.configure(setup_()));
    return twin_.start(0);
  }
  bool turn() override { return function_.turn(twin_); }

  HardwareReport report() override {
    const CardCounters card = twin_.counters();
    const FunctionCounters& function = function_.counters();
    return {.frames_in = card.rx_frames,
            .frames_out = card.tx_frames,
            .arp = function.arp,
            .icmp = function.icmp,
            .kv = function.kv,
            .ignored = function.ignored,
            .under_way = card.tx_taken - card.tx_frames,
            .cycles = function_.cycles(),
            .card = {{"rx_frames", card.rx_frames},
                     {"tx_done", card.tx_frames},
                     {"tails", card.rx_tails + card.tx_tails},
                     {"tx_written_back", card.tx_writebacks},
                     {"rx_unexpected", card.wrong_writebacks},
                     {"outside_reads", card.stray_reads},
                     {"outside_writes", card.stray_writes}}};
  }

 private:
  std::function<CardSetup()> setup_;
  Twin twin_;
  KvFunction function_;
};

}  // namespace

std::unique_ptr<DemoHardware> make_twin_hardware(const kv::Endpoint& self, std::function<CardSetup()> setup) {
  return std::make_unique<TwinHardware>(self, std::move(setup));
}

}  // namespace wherry::sim
