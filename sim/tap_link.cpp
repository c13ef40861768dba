// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/socket.hpp"
#include "base/try.hpp"
#include "kv/net/neighbour.hpp"
#include "sim/live_link.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::size_t kShortest = 60;  ///< an Ethernet frame without its check sequence
constexpr std::size_t kLongest = 9600;
constexpr std::size_t kWaiting = 32;  ///< frames before the core; the kernel keeps the rest, and drops too much

class TapLink final : public LiveLink {
 public:
  TapLink(const TapNames& names, Fd network, Fd host)
      : names_(names), taps_{std::move(network), std::move(host)}, fds_{taps_[0].get(), taps_[1].get()} {}

  std::size_t receive(Core& core) override {
    std::size_t count = 0;
    for (const Side side : {Side::kNet, Side::kHost}) {
      while (core.waiting(side) < kWaiting) {
        const ssize_t size = read(fd(side), frame_.data(), frame_.size());
        if (size <= 0) break;
        if (count++ == 0) core.set_clock(now_cycles());
        // A cable does not carry shorter frames, but the kernel's have no padding.
        const std::size_t bytes = std::max(static_cast<std::size_t>(size), kShortest);
        std::fill(frame_.begin() + size, frame_.begin() + static_cast<ssize_t>(bytes), std::byte{0});
        core.put(side, ByteView(frame_).first(bytes));
      }
    }
    return count;
  }

  void send(Core& core) override {
    for (const Side side : {Side::kNet, Side::kHost})
      while (const auto frame = core.take(side))
        if (write(fd(side), frame->bytes.data(), frame->bytes.size()) < 0) ++lost_;
  }

  [[nodiscard]] std::span<const int> fds() const noexcept override { return fds_; }
  [[nodiscard]] std::string describe() const override {
    return fmt::format("TAP {}, and {} for the host", names_.network, names_.host);
  }

 private:
  [[nodiscard]] int fd(Side side) const noexcept { return fds_[side == Side::kNet ? 0 : 1]; }

  TapNames names_;
  std::array<Fd, 2> taps_;
  std::array<int, 2> fds_;
  std::array<std::byte, kLongest> frame_;
};

wherry::Status failed(const std::string& what) {
  const char* hint = errno == EPERM || errno == EACCES ? " (be root)"
                     : errno == EBUSY                  ? " (another process has it)"
                     : errno == EINVAL                 ? " (there is another kind of interface of that name)"
                                                       : "";
  return {errno == EPERM || errno == EACCES ? StatusCode::kPermissionDenied : StatusCode::kUnavailable,
          fmt::format("{}: {}{}", what, std::strerror(errno), hint)};
}

/// A TAP device belongs to the namespace in which /dev/net/tun was opened.
Result<Fd> open_in(const std::string& space) {
  const Fd here(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  const Fd there(space.empty() ? -1 : open(space.c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.empty() && (!there || setns(there.get(), CLONE_NEWNET) != 0)) return failed("network namespace " + space);
  Fd tap(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const wherry::Status status = tap ? wherry::Status() : failed("TAP: /dev/net/tun");
  if (there && setns(here.get(), CLONE_NEWNET) != 0) return failed("the way back from namespace " + space);
  WHERRY_TRY(status);
  return tap;
}

/// Attaches to an existing TAP device, or makes one, which ends with this process.
Result<Fd> open_tap(const std::string& name, const std::string& space) {
  if (name.empty() || name.size() >= IFNAMSIZ)
    return wherry::Status(StatusCode::kInvalidArgument, fmt::format("TAP '{}': want a name of 1 to 15 letters", name));
  WHERRY_ASSIGN(auto tap, open_in(space));
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), name.size());
  request.ifr_flags = IFF_TAP | IFF_NO_PI;  // no offloads: the kernel computes checksums, and cuts what is too long
  if (ioctl(tap.get(), TUNSETIFF, &request) != 0) return failed("TAP " + name);
  return tap;
}

}  // namespace

Result<std::unique_ptr<LiveLink>> open_tap_link(const TapNames& names, const Endpoint& self) {
  WHERRY_ASSIGN(auto network, open_tap(names.network, names.network_space));
  WHERRY_ASSIGN(auto host, open_tap(names.host, ""));
  // ARP announces the interface's MAC, but the core accepts frames for the cluster file's MAC.
  WHERRY_ASSIGN(auto interface, find_interface(names.host));
  if (interface.mac != self.mac)
    return wherry::Status(
        StatusCode::kInvalidArgument,
        fmt::format("TAP {} has MAC {:012x}, and the cluster file says {:012x} for this node (0: nothing): make the "
                    "device first, with `ip tuntap add` and `ip link set address`, or correct 'node.mac'",
                    names.host, interface.mac, self.mac));
  return std::unique_ptr<LiveLink>(std::make_unique<TapLink>(names, std::move(network), std::move(host)));
}

}  // namespace wherry::kv::rtl
