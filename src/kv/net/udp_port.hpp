// SPDX-License-Identifier: Apache-2.0
// kv messages on a UDP socket, many per system call, for nodes and clients.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/socket.hpp"
#include "kv/message.hpp"
#include "kv/net/datagram.hpp"
#include "kv/net/port.hpp"
#include "wherry/status.hpp"

namespace wherry::kv {

/// Non-blocking. One thread at a time. A datagram is the 22-byte kv header and the value. The value may be longer than
/// kMaxValueBytes; a node answers such requests, too.
///
/// Outgoing messages: send() copies header and value to the end of a super-packet, a run of datagrams of one size to
/// one address. flush() passes all super-packets to the kernel in one sendmmsg(2), which cuts them into datagrams
/// (UDP_SEGMENT). Incoming messages: one recvmmsg(2) takes one super-packet (UDP_GRO), or up to kBatch if the last call
/// got one. poll() passes on their datagrams without a copy. Without segmentation in the kernel (before 5.0), each
/// datagram is sent alone.
class UdpPort final : public Output {
 public:
  struct Options {
    int buffer_bytes = 4 << 20;  ///< of the kernel, each way; it may grant less
    bool segments = true;        ///< false: each datagram alone
  };
  using Counters = PortCounters;

  /// `at`: IPv4 address and port in host byte order. Port 0: any port. An error names the address.
  static Result<UdpPort> open(const Endpoint& at, const Options& options);
  static Result<UdpPort> open(const Endpoint& at) { return open(at, Options{}); }

  /// The port's address, with the number that the kernel chose if port 0 was requested.
  [[nodiscard]] const Endpoint& local() const noexcept { return local_; }
  [[nodiscard]] int fd() const noexcept { return socket_.get(); }
  [[nodiscard]] const Counters& counters() const noexcept { return counters_; }

  /// Never blocks. The message is sent at the next flush(), or when the batch is full. Datagrams that the kernel
  /// refuses are counted and lost, as any datagram may be.
  void send(const Endpoint& to, const Message& message) override;
  /// Returns the number of datagrams that the kernel took.
  std::size_t flush();

  /// Passes received datagrams on: calls `take(const Endpoint& from, const Message&)` for each. The message is valid
  /// until `take` returns; `take` may call send(). At most about kBatch super-packets. Returns the number of datagrams.
  template <typename Take>
  std::size_t poll(Take&& take) {
    const int packets = receive();
    std::size_t count = 0;
    for (int i = 0; i < packets; ++i) {
      Packet packet = packet_at(i);
      while (!packet.bytes.empty()) {
        const ByteView datagram = packet.bytes.first(std::min(packet.segment, packet.bytes.size()));
        packet.bytes = packet.bytes.subspan(datagram.size());
        const std::optional<Message> message = unpack_datagram(datagram);
        if (!message) {  // too short; one that is too long has an answer: Status::too_long
          ++counters_.bad_length;
          continue;
        }
        ++count;
        take(packet.from, *message);
      }
    }
    counters_.received += count;
    return count;
  }

 private:
  static constexpr std::size_t kBatch = 16;           ///< super-packets of a system call
  static constexpr std::size_t kPacketBytes = 65536;  ///< memory for a super-packet, which is shorter:
  static constexpr std::size_t kLongestRun = kPacketBytes - 512;
  static constexpr std::size_t kSegments = 64;  ///< UDP_MAX_SEGMENTS of Linux before 6.9
  struct Packet {
    Endpoint from;
    ByteView bytes;
    std::size_t segment;
  };
  struct alignas(8) Control {
    std::byte bytes[64];
  };
  struct Side {
    std::vector<mmsghdr> headers = std::vector<mmsghdr>(kBatch);
    std::vector<iovec> pieces = std::vector<iovec>(kBatch);
    std::vector<sockaddr_in> addresses = std::vector<sockaddr_in>(kBatch);
    std::vector<Control> controls = std::vector<Control>(kBatch);
    std::unique_ptr<std::byte[]> bytes = std::make_unique_for_overwrite<std::byte[]>(kBatch * kPacketBytes);
  };
  struct Run {
    Endpoint to;
    std::size_t segment = 0, count = 0;
  };

  UdpPort(Fd socket, const Endpoint& local, bool segments);
  int receive();
  Packet packet_at(int index) noexcept;

  Fd socket_;
  Endpoint local_;
  bool segments_;
  std::unique_ptr<Side> in_ = std::make_unique<Side>(), out_ = std::make_unique<Side>();
  std::vector<Run> runs_ = std::vector<Run>(kBatch);
  std::size_t used_ = 0;  ///< of runs_
  unsigned wanted_ = 1;   ///< packets of the next receive()
  Counters counters_;
};
static_assert(Port<UdpPort>);

}  // namespace wherry::kv
