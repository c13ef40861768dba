// SPDX-License-Identifier: Apache-2.0
#include "sim/demo/host.hpp"

#include <fmt/core.h>

#include <memory>
#include <optional>
#include <thread>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "bypass/card.hpp"
#include "bypass/generated/functions_registers.hpp"
#include "bypass/nic/nic.hpp"
#include "kv/clock.hpp"
#include "kv/node/driver/driver.hpp"
#include "kv/node/driver/served_node.hpp"
#include "sim/demo/hardware.hpp"

namespace wherry::sim {
namespace {

using namespace std::chrono_literals;
namespace functions = bypass_functions::registers;

constexpr auto kHostPatience = 2min;  ///< for what takes milliseconds
constexpr std::uint32_t kToEcho = 1;  ///< spec/bypass_functions_registers.toml, receive.stream
constexpr std::uint64_t kBoot = 1;    ///< of the node in a cluster that nobody else is in

class NicAccess final : public bypass::Registers {
 public:
  explicit NicAccess(const HostLink& link) : link_(link) {}
  std::uint32_t read(std::uint32_t offset) override { return link_.call(HostCall::kNicRead, offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { link_.call(HostCall::kNicWrite, offset, value); }
  void pause(std::chrono::microseconds time) override { std::this_thread::sleep_for(time); }

 private:
  const HostLink& link_;
};

class RemoteCard final : public bypass::CardAccess {
 public:
  explicit RemoteCard(const HostLink& link) : link_(link) {}
  std::uint32_t read(std::uint32_t offset) override { return link_.call(HostCall::kCardRead, offset); }
  void write(std::uint32_t offset, std::uint32_t value) override { link_.call(HostCall::kCardWrite, offset, value); }
  Status read_window(std::uint32_t, std::span<std::byte>) override { return no_window(); }
  Status write_window(std::uint32_t, std::span<const std::byte>) override { return no_window(); }
  void pause(std::chrono::microseconds time) override { std::this_thread::sleep_for(time); }

 private:
  static Status no_window() { return {StatusCode::kUnsupported, "the host's part does not touch the card's window"}; }
  const HostLink& link_;
};

class RemoteKv final : public kv::RegisterIo {
 public:
  explicit RemoteKv(const HostLink& link) : link_(link) {}
  std::uint32_t read(std::uint32_t offset) override { return link_.call(HostCall::kCardRead, kKvRegisters + offset); }
  void write(std::uint32_t offset, std::uint32_t value) override {
    link_.call(HostCall::kCardWrite, kKvRegisters + offset, value);
  }

 private:
  const HostLink& link_;
};

/// There is no keeper.
class NoKeeper final : public kv::DriverOutput {
 public:
  void send(const kv::ToKeeper&) override {}
  std::uint64_t draw_boot() override { return kBoot; }
};

template <typename Condition>
Status wait_until(const char* what, const Condition& condition) {
  for (const Deadline deadline(kHostPatience); !condition(); std::this_thread::sleep_for(1ms))
    if (deadline.passed()) return {StatusCode::kDeadlineExceeded, fmt::format("{} does not come", what)};
  return {};
}

/// The kv core enters its only epoch. Its lease never ends, so from here on it needs no keeper.
Status set_up_kv(RemoteKv& registers, const std::string& file, kv::Endpoint& self) {
  kv::ServedNode node;
  WHERRY_TRY(kv::load_cluster(node, file, {}));
  WHERRY_TRY(kv::check_number(node));
  self = node.cluster.nodes[node.number].endpoint;
  if (node.cluster.mode != kv::ClusterMode::fixed)
    return {StatusCode::kInvalidArgument,
            fmt::format("{}: want mode static: any other needs software all the time", file)};
  NoKeeper output;
  kv::Driver driver(kv::driver_options(node), registers, output, kv::lease_clock());
  if (!driver.unfit().empty()) return {StatusCode::kInvalidArgument, driver.unfit()};
  driver.enter_static(kv::static_configuration(node.cluster), kv::lease_clock());
  return wait_until("the first epoch of the kv core", [&driver] {
    driver.on_time(kv::lease_clock());
    return driver.entered().has_value() && driver.complete();
  });
}

class Host {
 public:
  Host(const HostLink& link, const HostOptions& options)
      : link_(link), options_(options), nic_registers_(link), card_registers_(link), kv_registers_(link) {}

  Status set_up() {
    const bypass::Personality* nic = bypass::find_personality(options_.nic);
    if (nic == nullptr) return {StatusCode::kInvalidArgument, fmt::format("no NIC '{}' is known", options_.nic)};
    WHERRY_ASSIGN(nic_, bypass::make_nic(*nic, nic_registers_, {}));
    kv::Endpoint self;
    WHERRY_TRY(set_up_kv(kv_registers_, options_.cluster, self));
    if (!options_.twin) set_up_echo(self);
    WHERRY_TRY(nic_->reset());
    std::uint32_t rx_entries = kTwinEntries, tx_entries = kTwinEntries;
    bypass::NicSetup setup;
    if (!options_.twin) {
      WHERRY_ASSIGN(const bypass::Card opened, bypass::Card::open(card_registers_));
      card_ = opened;
      WHERRY_TRY(card_->configure(
          *nic, {.window = options_.card_bar, .nic = options_.nic_bar, .frame_bytes = setup.frame_bytes}));
      rx_entries = card_->shape().rx_entries;
      tx_entries = card_->shape().tx_entries;
    }
    setup.rings = {.rx = options_.card_bar + bypass::kRxRings,
                   .tx = options_.card_bar + bypass::kTxRings,
                   .rx_entries = rx_entries,
                   .tx_entries = tx_entries};
    WHERRY_TRY(nic_->start(setup));
    if (card_)
      WHERRY_TRY(card_->start());
    else
      link_.call(HostCall::kTwin, 0, 1);
    WHERRY_TRY(
        wait_until("the card's first receive tail", [&] { return nic_registers_.read(nic->rx_tail_offset) != 0; }));
    return wait_until("the NIC's link", [this] { return nic_->link().up; });
  }

  /// Sets up echo for frames that kv does not take: ARP requests for this address, and pings to it.
  void set_up_echo(const kv::Endpoint& self) {
    const auto write = [this](std::uint32_t offset, std::uint32_t value) {
      card_registers_.write(kFunctionRegisters + offset, value);
    };
    write(functions::kEchoMacLowOffset, static_cast<std::uint32_t>(self.mac));
    write(functions::kEchoMacHighOffset, static_cast<std::uint32_t>(self.mac >> 32));
    write(functions::kEchoIpOffset, self.ip);
    write(functions::kEchoControlOffset, functions::kEchoControlArp.mask() | functions::kEchoControlIcmp.mask());
    write(functions::kReceiveOffset, functions::kReceiveStream.set(0, kToEcho));
  }

  Status give_back() {
    if (card_)
      WHERRY_TRY(card_->stop());
    else
      link_.call(HostCall::kTwin, 0, 0);
    return nic_->stop();
  }

 private:
  const HostLink& link_;
  const HostOptions& options_;
  NicAccess nic_registers_;
  RemoteCard card_registers_;
  RemoteKv kv_registers_;
  std::unique_ptr<bypass::Nic> nic_;
  std::optional<bypass::Card> card_;
};

}  // namespace

Status run_host(const HostLink& link, const HostOptions& options) {
  Host host(link, options);
  WHERRY_TRY(host.set_up());
  link.call(HostCall::kReady);
  return host.give_back();
}

}  // namespace wherry::sim
