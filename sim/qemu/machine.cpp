// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/machine.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/try.hpp"

namespace wherry::sim {
namespace {

constexpr std::chrono::minutes kAnswerPatience{2};  ///< for what takes milliseconds

// Where ECAM and BARs are in the machine type microvm with pcie=on (hw/i386/microvm.c, include/hw/i386/microvm.h). On
// q35, QEMU 10 without KVM crashes when it routes the INTx of a proxy (hw/remote/proxy.c, proxy_intx_update).
constexpr std::uint64_t kEcam = 0xE000'0000;
constexpr PciMemory kBarSpace{.next = 0xC000'0000, .end = 0xE000'0000};

constexpr std::pair kManyBounceBuffers{9, 1};  ///< QEMU's version
constexpr std::uint16_t kIntel = 0x8086;

/// 64 KiB whose last 16 bytes are the first that the processor executes: cli; hlt; jmp to hlt.
Result<Fd> make_firmware() {
  constexpr std::size_t kBytes = 1U << 16;
  constexpr std::array<std::uint8_t, 4> kHalt{0xFA, 0xF4, 0xEB, 0xFD};
  Fd file(::memfd_create("firmware", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), kBytes) != 0 ||
      ::pwrite(file.get(), kHalt.data(), kHalt.size(), kBytes - 16) != ssize_t{kHalt.size()})
    return Status(StatusCode::kInternal, fmt::format("cannot make the firmware: {}", std::strerror(errno)));
  return file;
}

Status no_qemu(const std::string& program) {
  return {StatusCode::kNotFound, fmt::format("no program {}: install Debian's package qemu-system-x86 (apt-get install "
                                             "--no-install-recommends qemu-system-x86), or name another with --qemu",
                                             program)};
}

}  // namespace

class Machine::NicRegisters final : public bypass::Registers {
 public:
  explicit NicRegisters(Machine& all) : machine_(all) {}
  std::uint32_t read(std::uint32_t offset) override {
    if (!failure_) return ~0U;
    auto value = machine_.read32(machine_.nic_bar() + offset);
    if (!value) failure_ = std::move(value).status();
    return failure_ ? *value : ~0U;
  }
  void write(std::uint32_t offset, std::uint32_t value) override {
    if (failure_) failure_ = machine_.write32(machine_.nic_bar() + offset, value);
  }
  void pause(std::chrono::microseconds time) override {
    if (failure_) failure_ = machine_.turn_for(time);
  }
  [[nodiscard]] const Status& failure() const noexcept { return failure_; }

 private:
  Machine& machine_;
  Status failure_;
};

class Machine::Config final : public ConfigSpace {
 public:
  explicit Config(Machine& all) : machine_(all) {}
  /// PCI Express Base 4.0, 7.2.2.
  static std::uint64_t address(PciAddress at, std::uint32_t reg) {
    return kEcam +
           (std::uint64_t{at.bus} << 20 | std::uint64_t{at.device} << 15 | std::uint64_t{at.function} << 12 | reg);
  }
  Result<std::uint32_t> read32(PciAddress at, std::uint32_t reg) override { return machine_.read32(address(at, reg)); }
  Status write32(PciAddress at, std::uint32_t reg, std::uint32_t value) override {
    return machine_.write32(address(at, reg), value);
  }
  Status write16(PciAddress at, std::uint32_t reg, std::uint16_t value) override {
    machine_.qtest_->post_write16(address(at, reg), value);
    return {};
  }

 private:
  Machine& machine_;
};

Machine::Machine(const MachineOptions& options, DmaTarget& card)
    : options_(options),
      card_(card),
      proxy_(card),
      device_(proxy_, card),
      registers_(std::make_unique<NicRegisters>(*this)),
      config_(std::make_unique<Config>(*this)) {}

Machine::~Machine() = default;

bypass::Registers& Machine::nic_registers() noexcept { return *registers_; }

const Status& Machine::nic_failure() const noexcept { return registers_->failure(); }

Status Machine::turn_for(std::chrono::nanoseconds time) {
  for (const Deadline deadline{time}; !deadline.passed();) WHERRY_TRY(turn(1));
  return {};
}

Result<std::unique_ptr<Machine>> Machine::start(const MachineOptions& options, DmaTarget& card) {
  if (options.nic != "e1000e" && options.nic != "igb")
    return Status(StatusCode::kInvalidArgument, fmt::format("NIC '{}': want e1000e or igb", options.nic));
  std::unique_ptr<Machine> machine(new Machine(options, card));
  WHERRY_TRY(machine->launch());
  WHERRY_TRY(machine->find_functions());
  return machine;
}

Status Machine::ask_version() {
  auto asked = ChildProcess::start(options_.qemu, {"--version"}, {});
  if (!asked) return asked.status().code() == StatusCode::kNotFound ? no_qemu(options_.qemu) : asked.status();
  if (asked->wait() != 0)
    return {StatusCode::kUnsupported, fmt::format("{} --version fails: {}", options_.qemu, asked->said())};
  version_ = asked->said().substr(0, asked->said().find('\n'));
  int major = 0, minor = 0;
  if (std::sscanf(version_.c_str(), "QEMU emulator version %d.%d", &major, &minor) != 2)
    return {StatusCode::kUnsupported, fmt::format("{} is no QEMU: it says {}", options_.qemu, version_)};
  if (std::pair(major, minor) >= kManyBounceBuffers) limits_ = {.buffers = 64, .buffer_bytes = 1U << 16};
  return {};
}

std::uint64_t Machine::bounce_bytes() const noexcept { return std::uint64_t{limits_.buffers} * limits_.buffer_bytes; }

Status Machine::launch() {
  WHERRY_TRY(ask_version());
  const std::string bounce = limits_.buffers > 1 ? fmt::format(",x-max-bounce-buffer-size={}", bounce_bytes()) : "";
  WHERRY_ASSIGN(firmware_, make_firmware());
  WHERRY_ASSIGN(auto qtest, socket_pair());
  WHERRY_ASSIGN(auto monitor, socket_pair());
  WHERRY_ASSIGN(auto wire, socket_pair());
  WHERRY_ASSIGN(auto device, socket_pair());
  qtest_ = std::make_unique<Qtest>(std::move(qtest.first));
  monitor_ = std::make_unique<Monitor>(std::move(monitor.first));
  const bool tap = options_.tap >= 0;
  if (!tap) wire_ = std::make_unique<Wire>(std::move(wire.first));
  device_.connect(std::move(device.first));
  const std::array kept{firmware_.get(), qtest.second.get(), monitor.second.get(),
                        tap ? options_.tap : wire.second.get(), device.second.get()};
  // clang-format off
  WHERRY_ASSIGN(process_, ChildProcess::start(options_.qemu, {
      "-no-user-config", "-nodefaults", "-display", "none", "-accel", "tcg",
      "-M", "microvm,pcie=on,acpi=on,memory-backend=ram", "-m", "64M",
      "-object", "memory-backend-memfd,id=ram,size=64M,share=on",
      "-bios", fmt::format("/proc/self/fd/{}", kept[0]),
      "-chardev", fmt::format("socket,id=qtest,fd={}", kept[1]), "-qtest", "chardev:qtest", "-qtest-log", "none",
      "-chardev", fmt::format("socket,id=monitor,fd={}", kept[2]), "-mon", "chardev=monitor,mode=control",
      "-device", "pcie-root-port,id=root,chassis=1,slot=1",
      "-device", "x3130-upstream,id=switch,bus=root",
      "-device", "xio3130-downstream,id=nic-port,bus=switch,chassis=2,slot=2",
      "-device", "xio3130-downstream,id=card-port,bus=switch,chassis=3,slot=3",
      "-netdev", fmt::format("{},id=wire,fd={}", tap ? "tap" : "socket", kept[3]),
      "-device", fmt::format("{},id=nic,netdev=wire,bus=nic-port,mac={}{}", options_.nic, options_.mac, bounce),
      "-device", fmt::format("x-pci-proxy-dev,id=card,fd={},bus=card-port", kept[4])}, kept));
  // clang-format on
  return {};
}

Status Machine::find_functions() {
  WHERRY_ASSIGN(const auto functions, enumerate(*config_, kBarSpace));
  for (const PciFunction& function : functions) {
    if (function.vendor == kCardVendor && function.device == kCardDevice) card_function_ = function;
    if (function.vendor == kIntel && !function.bridge && function.bars[0].bytes != 0) nic_ = function;
  }
  if (nic_.bars[0].bytes == 0 || card_function_.bars[kCardBar].bytes != kBarBytes)
    return {StatusCode::kInternal, fmt::format("{}: the NIC or the card is not in its PCI tree", version_)};
  return {};
}

Status Machine::explain(Status status) {
  if (status.ok() || status.code() != StatusCode::kUnavailable) return status;
  for (const Deadline deadline{std::chrono::seconds(10)}; process_.running() && !deadline.passed();) ::usleep(1000);
  if (process_.running()) return {StatusCode::kUnavailable, fmt::format("{} has closed a connection", version_)};
  const int ended = process_.wait();
  const std::string said = process_.said();
  if (said.find(fmt::format("'{}' is not a valid device model name", options_.nic)) != std::string::npos)
    return {StatusCode::kUnsupported,
            fmt::format("{} has no NIC '{}': QEMU 8 or newer has; tools/qemu-backports.sh unpacks one, which --qemu "
                        "names",
                        version_, options_.nic)};
  return {StatusCode::kUnavailable, fmt::format("{} has ended with status {}: {}", version_, ended, said)};
}

Status Machine::turn(int wait_ms) {
  auto served = device_.serve();
  if (!served) return explain(served.status());
  card_.tick();
  post_tails();
  if (background_) WHERRY_TRY(background_());
  return explain(turn_channels(*served ? 0 : wait_ms));
}

void Machine::post_tails() {
  while (const auto tail = card_.next_tail()) qtest_->post_write32(tail->address, tail->value);
}

Status Machine::turn_channels(int wait_ms) {
  const auto events = [](bool out) { return static_cast<short>(out ? POLLIN | POLLOUT : POLLIN); };
  std::array<pollfd, 4> ready{{{device_.fd(), events(device_.wants_to_send()), 0},
                               {qtest_->fd(), events(qtest_->wants_to_send()), 0},
                               {wire_ ? wire_->fd() : -1, events(wire_ && wire_->wants_to_send()), 0},
                               {monitor_->fd(), events(monitor_->wants_to_send()), 0}}};
  ::poll(ready.data(), ready.size(), wait_ms);
  if (ready[0].revents & POLLOUT) WHERRY_TRY(device_.flush());
  if (ready[1].revents != 0) WHERRY_TRY(qtest_->turn());
  if (ready[2].revents != 0 && wire_) WHERRY_TRY(wire_->turn());
  if (ready[3].revents != 0) WHERRY_TRY(monitor_->turn());
  return {};
}

Result<std::uint32_t> Machine::read32(std::uint64_t address) {
  std::optional<std::uint32_t> value;
  qtest_->ask_read32(address);
  WHERRY_TRY(turn_until([&] { return (value = qtest_->take_value()).has_value(); }, kAnswerPatience, "a read"));
  return *value;
}

Status Machine::write32(std::uint64_t address, std::uint32_t value) {
  constexpr std::size_t kPosted = 256;  // answers that nobody has read yet
  qtest_->post_write32(address, value);
  if (qtest_->unanswered() < kPosted) return {};
  return turn_until([this] { return qtest_->unanswered() < kPosted; }, kAnswerPatience, "posted writes");
}

Status Machine::command(const std::string& name, const nlohmann::json& arguments) {
  std::optional<Status> answer;
  monitor_->post(name, arguments);
  WHERRY_TRY(turn_until([&] { return (answer = monitor_->take_answer()).has_value(); }, kAnswerPatience, name.c_str()));
  return *answer;
}

Status Machine::set_link(bool up) { return command("set_link", {{"name", "nic"}, {"up", up}}); }

Status Machine::remove_nic() {
  WHERRY_TRY(command("device_del", {{"id", "nic"}}));
  // There is no attention button and no operating system to ask: the power goes off at once.
  WHERRY_TRY(set_slot_power(*config_, nic_.parent, false));
  return turn_until([this] { return monitor_->take_event("DEVICE_DELETED", "nic"); }, kAnswerPatience,
                    "removal of the NIC");
}

Status Machine::insert_nic() {
  nlohmann::json device{
      {"driver", options_.nic}, {"id", "nic"}, {"netdev", "wire"}, {"bus", "nic-port"}, {"mac", options_.mac}};
  if (limits_.buffers > 1) device["x-max-bounce-buffer-size"] = bounce_bytes();
  WHERRY_TRY(command("device_add", device));
  WHERRY_TRY(set_slot_power(*config_, nic_.parent, true));
  return restore_bars(*config_, nic_);
}

}  // namespace wherry::sim
