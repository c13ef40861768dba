// SPDX-License-Identifier: Apache-2.0
#include "kv/net/xdp_socket.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/try.hpp"

namespace wherry::kv {
namespace {

wherry::Status socket_error(const std::string& what) {
  const int error = errno;
  const StatusCode code = error == EPERM || error == EACCES              ? StatusCode::kPermissionDenied
                          : error == EBUSY                               ? StatusCode::kAlreadyExists
                          : error == EOPNOTSUPP || error == EAFNOSUPPORT ? StatusCode::kUnsupported
                                                                         : StatusCode::kUnavailable;
  const char* const hint = error == EPERM || error == EACCES ? " (be root, or have CAP_NET_RAW)"
                           : error == ENOBUFS ? " (RLIMIT_MEMLOCK, `ulimit -l`, is less than the frames take)"
                           : error == EBUSY   ? " (another AF_XDP socket has it)"
                           : error == EINVAL  ? " (has the interface such a queue?)"
                                              : "";
  return {code, fmt::format("AF_XDP: {}: {}{}", what, std::strerror(error), hint)};
}

}  // namespace

Mapping::~Mapping() {
  if (at_ != nullptr) munmap(at_, bytes_);
}

Result<XdpSocket> XdpSocket::open(std::uint32_t frames) {
  if (!std::has_single_bit(frames) || frames < 64)
    return wherry::Status(StatusCode::kInvalidArgument,
                          fmt::format("AF_XDP: {} frames are not a power of two from 64 on", frames));
  XdpSocket socket(Fd(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)));
  if (!socket.socket_) return socket_error("no socket");
  const std::size_t bytes = 2 * kFrameBytes * frames;
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) return socket_error("no memory for frames");
  socket.frames_ = Mapping(at, bytes);
  xdp_umem_reg memory{};
  memory.addr = reinterpret_cast<std::uintptr_t>(at);
  memory.len = bytes;
  memory.chunk_size = kFrameBytes;
  if (setsockopt(socket.fd(), SOL_XDP, XDP_UMEM_REG, &memory, sizeof memory) != 0)
    return socket_error("cannot share memory with the kernel");
  WHERRY_TRY(socket.map_rings(frames));

  for (std::uint32_t i = 0; i < frames; ++i) socket.fill_[i] = i * kFrameBytes;
  socket.fill_.produce_until(frames);
  socket.free_.reserve(frames);
  for (std::uint32_t i = 2 * frames; i-- > frames;) socket.free_.push_back(i * kFrameBytes);
  return socket;
}

wherry::Status XdpSocket::map_rings(std::uint32_t frames) {
  // Each ring has room for all frames that can be in it, so adding one never fails.
  for (const int ring : {XDP_RX_RING, XDP_TX_RING, XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING})
    if (setsockopt(fd(), SOL_XDP, ring, &frames, sizeof frames) != 0) return socket_error("no ring");
  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof offsets;
  if (getsockopt(fd(), SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) return socket_error("no offsets of rings");
  if (size != sizeof offsets)
    return {StatusCode::kUnsupported, "AF_XDP: this kernel's rings have no flags; Linux 5.4 or newer is needed"};
  bool mapped = true;
  const auto map = [&]<typename Entry>(XdpRing<Entry>& ring, const xdp_ring_offset& at, std::uint64_t page) {
    const std::size_t bytes = at.desc + frames * sizeof(Entry);
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd(), static_cast<off_t>(page));
    if (memory == MAP_FAILED)
      mapped = false;
    else
      ring = XdpRing<Entry>(Mapping(memory, bytes), at, frames);
  };
  map(receive_, offsets.rx, XDP_PGOFF_RX_RING);
  map(send_, offsets.tx, XDP_PGOFF_TX_RING);
  map(fill_, offsets.fr, XDP_UMEM_PGOFF_FILL_RING);
  map(complete_, offsets.cr, XDP_UMEM_PGOFF_COMPLETION_RING);
  return mapped ? wherry::Status() : socket_error("cannot map a ring");
}

wherry::Status XdpSocket::bind(int interface, std::uint32_t queue, bool zero_copy) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = XDP_USE_NEED_WAKEUP | (zero_copy ? XDP_ZEROCOPY : XDP_COPY);
  address.sxdp_ifindex = static_cast<std::uint32_t>(interface);
  address.sxdp_queue_id = queue;
  if (::bind(fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return socket_error(fmt::format("queue {}, {}", queue, zero_copy ? "zero-copy" : "copy"));
  return {};
}

std::uint32_t XdpSocket::arrived(std::uint32_t most) noexcept {
  const std::uint32_t count = receive_.produced() - receive_.consumed();
  if (count == 0 && fill_.needs_wakeup()) recvfrom(fd(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
  return std::min(count, most);
}

ByteView XdpSocket::frame(std::uint32_t i) const noexcept {
  const xdp_desc& at = receive_[receive_.consumed() + i];
  return {frames_.data() + at.addr, at.len};
}

void XdpSocket::recycle(std::uint32_t count) noexcept {
  const std::uint32_t first = receive_.consumed(), produced = fill_.produced();
  for (std::uint32_t i = 0; i < count; ++i)
    fill_[produced + i] = receive_[first + i].addr & ~std::uint64_t{kFrameBytes - 1};
  fill_.produce_until(produced + count);
  receive_.consume_until(first + count);
}

std::span<std::byte> XdpSocket::sending() noexcept {
  if (free_.empty()) reclaim();
  if (free_.empty()) return {};
  return {frames_.data() + free_.back(), kFrameBytes};
}

void XdpSocket::send(std::size_t bytes) noexcept {
  send_[built_++] = {.addr = free_.back(), .len = static_cast<std::uint32_t>(bytes), .options = 0};
  free_.pop_back();
}

std::uint32_t XdpSocket::flush() noexcept {
  const std::uint32_t fresh = built_ - send_.produced();
  if (fresh != 0) send_.produce_until(built_);
  if (send_.consumed() != built_) wake_sender();
  if (fresh != 0) reclaim();  // so that few frames are used again and again, and stay in the caches
  return fresh;
}

void XdpSocket::wake_sender() noexcept {
  // One call sends some frames (32 in copy mode). If it sends none, the rest waits for the next flush().
  for (std::uint32_t before = send_.consumed(); before != built_ && send_.needs_wakeup();) {
    sendto(fd(), nullptr, 0, MSG_DONTWAIT, nullptr, 0);
    const std::uint32_t after = send_.consumed();
    if (after == before) break;
    before = after;
  }
}

void XdpSocket::reclaim() noexcept {
  const std::uint32_t end = complete_.produced();
  std::uint32_t at = complete_.consumed();
  for (; at != end; ++at) free_.push_back(complete_[at]);
  complete_.consume_until(end);
}

std::uint64_t XdpSocket::dropped() const noexcept {
  xdp_statistics statistics{};
  socklen_t size = sizeof statistics;
  if (getsockopt(fd(), SOL_XDP, XDP_STATISTICS, &statistics, &size) != 0) return 0;
  return statistics.rx_dropped + statistics.rx_ring_full;  // the other counters count the same, or attempts
}

}  // namespace wherry::kv
