// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/demo.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "bypass/generated/personalities.hpp"
#include "kv/control/cluster_file.hpp"

namespace wherry::sim {
namespace {

constexpr std::uint32_t kTwinSlots = 96;
constexpr std::chrono::minutes kSetUpPatience{3}, kEndPatience{1};  ///< for what takes a second
constexpr std::chrono::minutes kSettlePatience{1};                  ///< Linux may go on asking
constexpr int kQuietTurns = 100;                                    ///< each waits for a millisecond if nothing happens

Result<kv::Endpoint> endpoint_of(const std::string& file) {
  WHERRY_ASSIGN(const kv::ClusterFile cluster, kv::load_cluster_file(file));
  const kv::ClusterNode& node = cluster.nodes[0];
  if (!node.configured || node.endpoint.mac == 0)
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: want a node 0 with its 'mac'", file));
  return node.endpoint;
}

std::string mac_text(std::uint64_t mac) {
  std::string text;
  for (int shift = 40; shift >= 0; shift -= 8)
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", mac >> shift & 0xFF);
  return text;
}

/// The card, with a count of the tails that it has written.
class CountedCard final : public DmaTarget {
 public:
  explicit CountedCard(DmaTarget& card) : card_(card) {}
  void write(std::uint32_t offset, std::span<const std::byte> data) override { card_.write(offset, data); }
  void read(std::uint32_t offset, std::span<std::byte> data) override { card_.read(offset, data); }
  void tick() override { card_.tick(); }
  std::optional<TailWrite> next_tail() override {
    auto tail = card_.next_tail();
    if (tail) ++tails_;
    return tail;
  }
  [[nodiscard]] std::uint64_t tails() const noexcept { return tails_; }

 private:
  DmaTarget& card_;
  std::uint64_t tails_ = 0;
};

class Demo {
 public:
  Demo(const DemoOptions& options, const std::atomic<bool>& stop, const DemoObserver& observer)
      : options_(options), stop_(stop), observer_(observer) {}

  Status start(const std::string& self) {
    WHERRY_ASSIGN(const kv::Endpoint endpoint, endpoint_of(options_.cluster));
    if (options_.loopback) WHERRY_TRY(switch_loopback_on());
    WHERRY_ASSIGN(const Fd tap, make_tap(options_.tap));
    card_ = options_.twin ? make_twin_hardware(endpoint, [this] { return twin_setup(); }) : make_rtl_hardware();
    counted_.emplace(*card_);
    MachineOptions machine = options_.machine;
    machine.mac = mac_text(endpoint.mac);
    machine.tap = tap.get();
    WHERRY_ASSIGN(machine_, Machine::start(machine, *counted_));
    std::vector<std::string> arguments{"host",
                                       "--nic",
                                       machine.nic,
                                       "--cluster",
                                       options_.cluster,
                                       "--card-bar",
                                       std::to_string(machine_->card_bar()),
                                       "--nic-bar",
                                       std::to_string(machine_->nic_bar())};
    if (options_.twin) arguments.emplace_back("--twin");
    WHERRY_ASSIGN(auto host, HostPart::start(self, std::move(arguments)));
    host_ = std::make_unique<HostPart>(std::move(host));
    report_.qemu = machine_->version();
    report_.host = host_->pid();
    report_.qemu_process = machine_->pid();
    for (const Deadline deadline(kSetUpPatience); !host_->ready() && !stop_.load();) {
      if (deadline.passed()) return {StatusCode::kDeadlineExceeded, "the host's part does not come to an end"};
      WHERRY_TRY(turn());
    }
    report_.host_setup_accesses = host_->accesses();
    if (options_.suspend && host_->ready()) {
      host_->suspend();
      for (const Deadline deadline(kSetUpPatience); host_->use().state != 'T' && !deadline.passed();)
        WHERRY_TRY(turn());
    }
    report_.host_setup_ns = host_->use().cpu_ns;
    report_.ready = host_->ready();
    began_ = now_ns();
    return {};
  }

  Status run() {
    for (std::uint64_t due = 0; !stop_.load(std::memory_order_relaxed);) {
      if (now_ns() >= due) {
        due = now_ns() + static_cast<std::uint64_t>(std::chrono::nanoseconds(options_.every).count());
        observe();
      }
      WHERRY_TRY(turn());
    }
    return {};
  }

  Status end() {
    if (!host_->ready()) return {};
    machine_->resume();
    WHERRY_TRY(settle());
    observe();
    host_->resume();
    host_->give_back();
    for (const Deadline deadline(kEndPatience); !host_->ended();) {
      if (deadline.passed()) return {StatusCode::kDeadlineExceeded, "the host's part does not give the NIC back"};
      WHERRY_TRY(turn());
    }
    return {};
  }

 private:
  Status turn() {
    const bool busy = card_->turn();
    WHERRY_TRY(machine_->turn(busy ? 0 : 1));
    return host_->serve([this](const HostMessage& message) { return access(message); });
  }

  /// Waits until the NIC has read all answers, and has brought nothing for some turns.
  Status settle() {
    const auto moved = [this] { return machine_->proxy().bar_reads() + machine_->proxy().bar_writes(); };
    const Deadline patience(kSettlePatience);
    while (!patience.passed()) {
      std::uint64_t last = moved();
      for (int quiet = 0; quiet < kQuietTurns && !patience.passed(); ++quiet) {
        WHERRY_TRY(turn());
        if (std::exchange(last, moved()) != moved()) quiet = 0;
      }
      if (card_->report().under_way == 0) return {};
    }
    return {};
  }

  Result<std::uint32_t> access(const HostMessage& message) {
    std::uint32_t value = 0;
    switch (message.call) {
      case HostCall::kNicRead:
        value = machine_->nic_registers().read(message.offset);
        WHERRY_TRY(machine_->nic_failure());
        break;
      case HostCall::kNicWrite:
        machine_->nic_registers().write(message.offset, message.value);
        WHERRY_TRY(machine_->nic_failure());
        break;
      case HostCall::kCardRead:
        value = card_->read_register(message.offset);
        break;
      case HostCall::kCardWrite:
        card_->write_register(message.offset, message.value);
        break;
      case HostCall::kTwin:
        WHERRY_TRY(card_->run(message.value != 0));
        break;
      case HostCall::kReady:
      case HostCall::kFailed:
        break;  // not an access
    }
    return value;
  }

  CardSetup twin_setup() const {
    CardSetup setup;
    setup.nic = bypass::find_personality(options_.machine.nic);
    setup.bar = machine_->card_bar();
    setup.nic_bar = machine_->nic_bar();
    setup.queues = {{.rx_entries = kTwinEntries, .tx_entries = kTwinEntries, .first_slot = 0, .slots = kTwinSlots}};
    return setup;
  }

  void observe() {
    report_.seconds = static_cast<double>(now_ns() - began_) * 1e-9;
    report_.hardware = card_->report();
    report_.dma_reads = machine_->proxy().bar_reads();
    report_.dma_writes = machine_->proxy().bar_writes();
    report_.tail_writes = counted_->tails();
    report_.cpu_ns = use_of(::getpid()).cpu_ns;
    report_.qemu_cpu_ns = use_of(machine_->pid()).cpu_ns;
    report_.host_use = host_->use();
    report_.host_accesses = host_->accesses();
    observer_(report_);
  }

  const DemoOptions& options_;
  const std::atomic<bool>& stop_;
  const DemoObserver& observer_;
  std::unique_ptr<DemoHardware> card_;
  std::optional<CountedCard> counted_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<HostPart> host_;
  DemoReport report_;
  std::uint64_t began_ = 0;
};

}  // namespace

Status run_demo(const DemoOptions& options, const std::string& self, const std::atomic<bool>& stop,
                const DemoObserver& observer) {
  Demo demo(options, stop, observer);
  WHERRY_TRY(demo.start(self));
  WHERRY_TRY(demo.run());
  return demo.end();
}

}  // namespace wherry::sim
