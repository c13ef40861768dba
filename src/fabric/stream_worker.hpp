// SPDX-License-Identifier: Apache-2.0
// The stream transport's side of a Worker: its links, a listener if one was requested, and the readiness of all their
// sockets (Asio).
//
// Processes of a job connect to each other: each to the listener of every process that it sends to. On such a
// connection only the process that made it sends. So at the other end the kernel's keep-alive (which TCP uses only
// while no data are in flight outwards) tells within `peer_timeout` that the sender cannot be reached any more, even if
// both processes are busy.
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
  /// `registered`: the memory for offer_memory(). It outlives this.
  StreamWorker(const RegisteredMemory& registered, Deliver deliver);
  ~StreamWorker() override;

  /// Opens a listener. Its address() then says where it is and which secret it needs.
  Status listen(const StreamOptions& options);
  [[nodiscard]] const Bytes& address() const noexcept;
  /// A link over a connection that has been proven.
  std::shared_ptr<StreamLink> adopt(std::unique_ptr<ByteStream> stream);
  /// A link to another worker's listener. Returns at once. Messages wait until the connection exists. `who`: names the
  /// other side in errors. kProtocol: that is not an address.
  Result<std::shared_ptr<StreamLink>> connect(ByteView address, std::string who);
  /// Names the peers that connect() has not reached yet, or that have not reached us. None once all links are up both
  /// ways, or have failed.
  [[nodiscard]] std::vector<std::string> awaited() const;
  /// The caller used a link outside of progress(), so messages that wait for room are not forgotten.
  void touch(StreamLink& link);
  /// The caller needs the link no more. Unlike the end of its last owner, this says goodbye.
  void drop(const std::shared_ptr<StreamLink>& link);

  unsigned progress();
  /// Sleeps until a socket has news, wake(), or the time is over. Another thread may be in any other function.
  void wait(std::chrono::milliseconds most);
  void wake();

  /// The other side of a link may read all registered memory, if `offer`.
  void offer_memory(bool offer) noexcept { offers_ = offer; }
  /// ... and put data here, and nowhere else.
  void accept_puts(std::uint64_t address, std::uint64_t bytes) noexcept {
    puts_at_ = address;
    puts_bytes_ = bytes;
  }

  // StreamLink::Host
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
