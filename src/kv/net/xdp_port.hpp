// SPDX-License-Identifier: Apache-2.0
// kv messages as whole frames on an AF_XDP socket, which bypasses the kernel: docs/guide/kv-xdp.md. It has the same
// interface as UdpPort.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kv/message.hpp"
#include "kv/net/frame_io.hpp"
#include "kv/net/neighbour_table.hpp"
#include "kv/net/port.hpp"
#include "kv/net/xdp_program.hpp"
#include "kv/net/xdp_socket.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// While nothing arrives, the port polls without system calls. One thread at a time. The kernel gets frames for another
/// MAC, address or port, fragments, and frames with IP options. The port leaves the interface when it is destroyed, or
/// when the process ends in any way.
///
/// Outgoing messages: send() builds the frame where the kernel or the interface reads it. flush() hands over all
/// frames, with one system call per 32 frames in copy mode, and often none in zero-copy mode. Incoming messages: poll()
/// passes on the content of the frames that the kernel wrote.
class XdpPort final : public Output {
 public:
  enum class Attach {
    automatic,  ///< native if the driver can, else generic
    native,     ///< in the driver
    generic,    ///< in the kernel, for any interface: little faster than a socket
  };
  struct Options {
    std::string interface;
    std::uint32_t queue = 0;  ///< the only one whose frames it sees
    Attach attach = Attach::automatic;
    bool zero_copy = true;        ///< if the driver can; otherwise the kernel copies
    std::uint32_t frames = 2048;  ///< each way, of 2 KiB; a power of two
    /// kNone: sent frames have no UDP checksum, as IPv4 permits, so their receiver need not compute it either. Use it
    /// only between ends joined by links with their own check (a cable), or inside one machine (a veth pair).
    UdpChecksum checksum = UdpChecksum::kRight;
  };
  struct Counters : PortCounters {
    std::uint64_t partial_checksum = 0;  ///< of bad_checksum: the sender's kernel left it to a device that has none
    std::uint64_t foreign = 0;           ///< not ours, although the program thought so: 0, unless something is broken
    std::uint64_t no_neighbour = 0;      ///< of send_failed: to an address without a MAC
  };

  /// `at.mac` 0: the interface's MAC. An error names the interface and the step that failed.
  static Result<XdpPort> open(Endpoint at, const Options& options);

  [[nodiscard]] const Endpoint& local() const noexcept { return local_; }
  [[nodiscard]] int fd() const noexcept { return socket_.fd(); }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }
  [[nodiscard]] bool native() const noexcept { return native_; }
  [[nodiscard]] bool zero_copy() const noexcept { return zero_copy_; }
  /// A description such as "eth0 queue 0, native, copy".
  [[nodiscard]] std::string describe() const;
  /// Number of our frames that the kernel lost because poll() was called too rarely. Makes a system call.
  [[nodiscard]] std::uint64_t lost() const noexcept { return socket_.dropped(); }

  /// Lets send() find the MAC for an Endpoint without one. Without `mac` it asks the network, and blocks meanwhile.
  wherry::Status add_neighbour(std::uint32_t ip, std::uint64_t mac) { return neighbours_.add(ip, {.mac = mac}); }
  wherry::Status add_neighbour(std::uint32_t ip);
  /// As add_neighbour(), as long as the port lives and without waiting: refresh() asks, and a later refresh() gets the
  /// answer. It also detects a changed MAC.
  wherry::Status keep_neighbour(std::uint32_t ip) { return neighbours_.keep(ip); }
  /// Returns whether all neighbours are known. Costs some tens of microseconds if a look-up is due, otherwise nothing,
  /// so call it often.
  bool refresh(std::uint64_t now_ns) { return neighbours_.refresh(now_ns); }

  /// Never blocks. The message is sent at the next flush(), or when no frame is free. If no frame becomes free, the
  /// message is counted and lost.
  void send(const Endpoint& to, const Message& message) override;
  std::size_t flush() {
    const std::uint32_t fresh = socket_.flush();
    counters_.sent += fresh;
    return fresh;
  }

  /// Like UdpPort::poll(): calls `take(from, message)` for each correct frame, at most kBatch frames.
  template <typename Take>
  std::size_t poll(Take&& take) {
    const std::uint32_t frames = socket_.arrived(kBatch);
    if (frames == 0) return 0;
    std::size_t count = 0;
    for (std::uint32_t i = 0; i < frames; ++i) {
      Received received;
      if (!accept(socket_.frame(i), received)) continue;
      ++count;
      take(received.from, received.message);
    }
    socket_.recycle(frames);
    counters_.received += count;
    return count;
  }

 private:
  static constexpr std::uint32_t kBatch = 64;

  XdpPort(XdpSocket socket, XdpProgram program, const Endpoint& local, std::string interface)
      : socket_(std::move(socket)),
        program_(std::move(program)),
        local_(local),
        interface_(std::move(interface)),
        neighbours_(std::vector{interface_}) {}
  bool accept(ByteView frame, Received& out) noexcept;

  XdpSocket socket_;
  XdpProgram program_;  // goes first: then no frame is on its way to the socket
  Endpoint local_;
  std::string interface_;
  std::uint32_t queue_ = 0;
  bool native_ = false, zero_copy_ = false;
  UdpChecksum checksum_ = UdpChecksum::kRight;
  NeighbourTable neighbours_;
  Counters counters_;
};
static_assert(Port<XdpPort>);

}  // namespace wherry::kv
