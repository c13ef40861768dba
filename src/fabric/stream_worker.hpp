// SPDX-License-Identifier: Apache-2.0
// The stream transport's side of a Worker: its links, a listener if one was requested, and the readiness of all their
// sockets (Asio).
//
// In a job, each process connects to the listener of every process that it sends to. Only the process that made a
// connection sends on it. So at the receiving end the kernel's keep-alive detects within `peer_timeout` that the
// sender is unreachable, even if both processes are busy. (TCP uses keep-alive only while no outgoing data are in
// flight.)
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fabric/registered_memory.hpp"
#include "fabric/stream_auth.hpp"
#include "fabric/stream_link.hpp"
#include "fabric/tls.hpp"

namespace wherry::fabric {

struct StreamOptions {
  std::string listen;  ///< address or network interface; empty: all of this machine's
  TlsFiles tls;
  std::chrono::seconds peer_timeout{5};  ///< 3 or more
  std::size_t largest_message = std::size_t{16} << 20;
};

/// One thread at a time, except wait() and wake().
class StreamWorker final : public StreamLink::Host {
 public:
  using Deliver = std::function<void(std::uint32_t id, ByteView message)>;
  /// `registered`: the memory for offer_memory(). It must outlive the StreamWorker.
  StreamWorker(const RegisteredMemory& registered, Deliver deliver);
  ~StreamWorker() override;

  /// Opens a listener. address() then contains its address and its secret.
  Status listen(const StreamOptions& options);
  [[nodiscard]] const Bytes& address() const noexcept;
  /// Makes a link on an authenticated connection.
  std::shared_ptr<StreamLink> adopt(std::unique_ptr<ByteStream> stream);
  /// Makes a link to another worker's listener. Returns at once; messages wait until the connection exists. `who`: the
  /// other side's name in errors. kProtocol: `address` is not an address.
  Result<std::shared_ptr<StreamLink>> connect(ByteView address, std::string who);
  /// The names of peers without a connection in both directions yet. Empty when all links are connected in both
  /// directions, or have failed.
  [[nodiscard]] std::vector<std::string> awaited() const;
  /// Call it after using a link outside of progress(), so that messages that wait for room are sent later.
  void touch(StreamLink& link);
  /// Ends a link that the caller no longer needs. Sends a goodbye, which destroying the last owner does not.
  void drop(const std::shared_ptr<StreamLink>& link);

  unsigned progress();
  /// Sleeps until a socket is ready, wake() is called, or the time is over. Other threads may call functions.
  void wait(std::chrono::milliseconds most);
  void wake();

  /// If `offer`, the other side of a link may read all registered memory.
  void offer_memory(bool offer) noexcept { offers_ = offer; }
  /// The other side of a link may put data into this memory only.
  void accept_puts(std::uint64_t address, std::uint64_t bytes) noexcept {
    puts_at_ = address;
    puts_bytes_ = bytes;
  }

  // Functions of StreamLink::Host.
  [[nodiscard]] bool may_read(std::uint64_t address, std::uint64_t bytes) const override;
  [[nodiscard]] bool may_write(std::uint64_t address, std::uint64_t bytes) const override;
  [[nodiscard]] std::size_t largest_message() const override;
  void on_message(std::uint32_t id, ByteView message) override { deliver_(id, message); }

 private:
  struct Impl;
  const RegisteredMemory& registered_;
  Deliver deliver_;
  bool offers_ = false;
  std::uint64_t puts_at_ = 0, puts_bytes_ = 0;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wherry::fabric
