// SPDX-License-Identifier: Apache-2.0
// For tests: the reference store on real loopback sockets, with a network that is as bad as the test asks.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kv/client/testing.hpp"
#include "kv/net/datagram.hpp"

namespace wherry::kv::testing {

class UdpStore {
 public:
  struct Badness {
    double loss = 0, repeat = 0, late = 0;  ///< shares of the datagrams, each way
    bool garbage = false;                   ///< broken replies before each true one
  };

  UdpStore(std::uint8_t count, Badness badness, std::uint64_t seed) : store(count), badness_(badness), random_(seed) {
    for (std::uint8_t n = 0; n < count; ++n) {
      const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      ::bind(fd, reinterpret_cast<sockaddr*>(&at), sizeof at);
      const int bytes = 1 << 22;
      ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
      socklen_t length = sizeof at;
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length);
      sockets_.push_back(fd);
      names.push_back("127.0.0.1:" + std::to_string(ntohs(at.sin_port)));
    }
    thread_ = std::thread([this] { run(); });
  }
  UdpStore(const UdpStore&) = delete;
  UdpStore& operator=(const UdpStore&) = delete;
  ~UdpStore() {
    stop_ = true;
    thread_.join();
    for (const int fd : sockets_) ::close(fd);
  }

  /// Calls `change(store)` between two requests.
  template <typename Change>
  auto with(Change&& change) {
    const std::lock_guard lock(mutex_);
    return change(store);
  }
  std::atomic<unsigned> dead = 0;  ///< bit by node: it hears nothing
  std::vector<std::string> names;

 private:
  struct Late {
    std::size_t node;
    sockaddr_in to;
    std::vector<std::byte> data;
  };

  void run() {
    std::vector<pollfd> polls;
    for (const int fd : sockets_) polls.push_back({fd, POLLIN, 0});
    while (!stop_) {
      ::poll(polls.data(), polls.size(), 5);
      for (std::size_t n = 0; n < sockets_.size(); ++n) receive(n);
      if (late_.size() > 20 || (!late_.empty() && chance() < 0.05)) {  // overtaken by others
        const std::size_t i = random_() % late_.size();
        transmit(late_[i].node, late_[i].to, late_[i].data);
        late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  void receive(std::size_t node) {
    std::array<std::byte, 2048> in{};
    sockaddr_in from{};
    socklen_t length = sizeof from;
    ssize_t n = 0;
    while ((n = ::recvfrom(sockets_[node], in.data(), in.size(), 0, reinterpret_cast<sockaddr*>(&from), &length)) >=
           0) {
      const auto message = unpack_datagram(ByteView(in).first(static_cast<std::size_t>(n)));
      if (!message || (dead >> node & 1) != 0 || chance() < badness_.loss) continue;
      for (int copies = chance() < badness_.repeat ? 2 : 1; copies > 0; --copies) answer(node, from, *message);
    }
  }
  void answer(std::size_t node, const sockaddr_in& to, const Message& message) {
    std::optional<ReferenceStore::Reply> reply;
    {
      const std::lock_guard lock(mutex_);
      reply = store.handle(static_cast<std::uint8_t>(node), message);
    }
    if (!reply) return;
    Datagram data;
    const std::size_t bytes = pack_datagram(reply->message(), data);
    std::vector<std::byte> out(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(bytes));
    if (badness_.garbage) {
      std::vector<std::byte> broken(random_() % 1500);
      for (std::byte& b : broken) b = static_cast<std::byte>(random_());
      if (random_() % 2 == 0) std::copy_n(out.begin(), std::min<std::size_t>(broken.size(), 12), broken.begin());
      transmit(node, to, broken);
      transmit(node, to, {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(random_() % 22)});  // truncated
    }
    for (int copies = chance() < badness_.repeat ? 2 : 1; copies > 0; --copies) {
      if (chance() < badness_.loss) continue;
      if (chance() < badness_.late) {
        late_.push_back({node, to, out});
      } else {
        transmit(node, to, out);
      }
    }
  }
  void transmit(std::size_t node, const sockaddr_in& to, const std::vector<std::byte>& data) const {
    ::sendto(sockets_[node], data.data(), data.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }
  double chance() { return std::uniform_real_distribution<>()(random_); }

  ReferenceStore store;
  Badness badness_;
  std::mt19937_64 random_;
  std::vector<int> sockets_;
  std::vector<Late> late_;
  std::mutex mutex_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace wherry::kv::testing
