// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/guest.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/try.hpp"

namespace wherry::sim {
namespace {

constexpr std::size_t kMemoryBytes = std::size_t{512} << 20;
constexpr std::chrono::minutes kReadPatience{5};  ///< for what takes milliseconds
constexpr const char* kNicMacText = "52:54:00:12:34:56";
/// intel_iommu=on: it is off in Debian's kernel. nopt: the kernel's own drivers are translated, too. no_timer_check and
/// nowatchdog: on a busy machine QEMU's timers are late, which the kernel would take for broken hardware.
constexpr const char* kCommandLine =
    "console=ttyS0 intel_iommu=on iommu=nopt ipv6.disable=1 no_timer_check nowatchdog quiet panic=-1";
constexpr std::chrono::milliseconds kStill{50};
constexpr std::chrono::minutes kSettlePatience{5};  ///< for what takes milliseconds

}  // namespace

Result<std::unique_ptr<Guest>> Guest::start(const GuestOptions& options, DmaTarget& card, RegisterTarget& registers) {
  std::unique_ptr<Guest> guest(new Guest(card, registers));
  WHERRY_TRY(guest->launch(options));
  return guest;
}

Status Guest::launch(const GuestOptions& options) {
  WHERRY_TRY(memory_.make(kMemoryBytes));
  WHERRY_ASSIGN(auto qtest, socket_pair());
  WHERRY_ASSIGN(auto wire, socket_pair());
  WHERRY_ASSIGN(auto device, socket_pair());
  WHERRY_ASSIGN(auto serial, socket_pair());
  qtest_ = std::make_unique<Qtest>(std::move(qtest.first));
  wire_ = std::make_unique<Wire>(std::move(wire.first));
  device_.connect(std::move(device.first));
  serial_ = Channel(std::move(serial.first));
  const std::array kept{qtest.second.get(), wire.second.get(), device.second.get(), serial.second.get(), memory_.fd()};
  // clang-format off
  std::vector<std::string> words{
      "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-accel", "tcg", "-cpu", "max",
      "-M", "q35,kernel-irqchip=off,memory-backend=ram", "-m", fmt::format("{}M", kMemoryBytes >> 20),
      "-object", fmt::format("memory-backend-file,id=ram,size={},share=on,mem-path=/proc/self/fd/{}", kMemoryBytes, kept[4]),
      "-kernel", options.kernel, "-initrd", options.initrd, "-append", kCommandLine,
      "-chardev", fmt::format("socket,id=qtest,fd={}", kept[0]), "-qtest", "chardev:qtest", "-qtest-log", "none",
      "-chardev", fmt::format("socket,id=serial,fd={}", kept[3]), "-serial", "chardev:serial",
      "-device", "intel-iommu",
      "-device", "pcie-root-port,id=root,chassis=1,slot=1",
      "-device", "x3130-upstream,id=switch,bus=root",
      "-device", "xio3130-downstream,id=nic-port,bus=switch,chassis=2,slot=2",
      "-device", "xio3130-downstream,id=card-port,bus=switch,chassis=3,slot=3",
      "-netdev", fmt::format("socket,id=wire,fd={}", kept[1]),
      "-device", fmt::format("e1000e,id=nic,netdev=wire,bus=nic-port,mac={}", kNicMacText),
      "-device", fmt::format("x-pci-proxy-dev,id=card,fd={},bus=card-port", kept[2])};
  // clang-format on
  WHERRY_ASSIGN(process_, ChildProcess::start(options.qemu, words, kept));
  return {};
}

Status Guest::turn(int wait_ms) {
  WHERRY_ASSIGN(const bool served, device_.serve());
  card_.tick();
  post_tails();
  return turn_channels(served ? 0 : wait_ms);
}

void Guest::post_tails() {
  if (held_) return;
  while (const auto tail = card_.next_tail()) {
    // A root complex or a switch would block this access (PCI Express Base 4.0, 7.5.1.1.3).
    if (!proxy_.bus_master()) {
      ++tails_refused_;
      continue;
    }
    const auto place = translate(tail->address);
    if (!place) {
      ++tails_faulted_;
      continue;
    }
    ++tails_;
    last_tail_ = tail->address;
    qtest_->post_write32(*place, tail->value);
  }
}

Result<std::uint32_t> Guest::read32(std::uint64_t address) {
  std::optional<std::uint32_t> value;
  qtest_->ask_read32(address);
  for (const Deadline deadline(kReadPatience); !(value = qtest_->take_value());) {
    WHERRY_TRY(turn(1));
    if (deadline.passed()) return Status(StatusCode::kDeadlineExceeded, "QEMU does not answer a read");
  }
  return *value;
}

Status Guest::attach(std::uint16_t source) {
  WHERRY_ASSIGN(const std::uint32_t status, read32(kVtdRegisters + kVtdGlobalStatus));
  if ((status & kVtdTranslates) == 0) return {StatusCode::kFailedPrecondition, "the guest has its IOMMU off"};
  WHERRY_ASSIGN(const std::uint64_t low, read32(kVtdRegisters + kVtdRootTable));
  WHERRY_ASSIGN(const std::uint64_t high, read32(kVtdRegisters + kVtdRootTable + 4));
  tables_.emplace(memory_.bytes(), high << 32 | low);
  source_ = source;
  return {};
}

std::optional<std::uint64_t> Guest::translate(std::uint64_t address) const {
  return tables_ ? tables_->translate_write(source_, address) : std::nullopt;
}

Guest::Memory::~Memory() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

Status Guest::Memory::make(std::size_t bytes) {
  const auto failed = [] {
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("no memory for the guest: {}", std::generic_category().message(errno)));
  };
  file_ = Fd(::memfd_create("guest", MFD_CLOEXEC));
  if (!file_ || ::ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) return failed();
  void* const at = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_.get(), 0);
  if (at == MAP_FAILED) return failed();
  bytes_ = {static_cast<const std::byte*>(at), bytes};
  return {};
}

Status Guest::turn_channels(int wait_ms) {
  const auto events = [](bool out) { return static_cast<short>(out ? POLLIN | POLLOUT : POLLIN); };
  std::array<pollfd, 4> ready{{{device_.fd(), events(device_.wants_to_send()), 0},
                               {qtest_->fd(), events(qtest_->wants_to_send()), 0},
                               {wire_->fd(), events(wire_->wants_to_send()), 0},
                               {serial_.fd(), events(serial_.wants_to_send()), 0}}};
  ::poll(ready.data(), ready.size(), wait_ms);
  if (ready[0].revents & POLLOUT) WHERRY_TRY(device_.flush());
  if (ready[1].revents != 0) WHERRY_TRY(qtest_->turn());
  if (ready[2].revents != 0) WHERRY_TRY(wire_->turn());
  if (ready[3].revents != 0) {
    WHERRY_TRY(serial_.flush());
    WHERRY_TRY(serial_.fill());
  }
  return {};
}

std::optional<std::string> Guest::take_line() {
  const std::size_t end = serial_.text().find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string line(serial_.text().substr(0, end));
  serial_.consume(end + 1);
  while (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

Status Guest::settle() {
  const auto messages = [this] { return proxy_.bar_reads() + proxy_.bar_writes(); };
  const Deadline deadline(kSettlePatience);
  std::uint64_t last = messages();
  for (Deadline still(kStill); !still.passed() || qtest_->unanswered() != 0 || wire_->waiting_bytes() != 0;) {
    WHERRY_TRY(turn(1));
    if (std::exchange(last, messages()) != messages()) still = Deadline(kStill);
    if (deadline.passed()) return {StatusCode::kDeadlineExceeded, "QEMU: the NIC does not come to rest"};
  }
  return {};
}

std::optional<int> Guest::ended() {
  if (process_.running()) return std::nullopt;
  return process_.wait();
}

}  // namespace wherry::sim
