// SPDX-License-Identifier: Apache-2.0
// The stream transport's side of a Worker: its links, a listener where one was asked for, and the readiness of all
// their sockets (Asio).
//
// Processes of a job connect to each other: each to the listener of each other that it sends to. On such a connection
// only the one that made it sends, so that at the other end the kernel's keep-alive (which TCP makes only while nothing
// is on its way out) says within `peer_timeout` when the sender cannot be reached any more, whatever the two processes
// are busy with.
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

/// One thread at a time, but for wait() and wake().
class StreamWorker final : public StreamLink::Host {
 public:
  using Deliver = std::function<void(std::uint32_t id, ByteView message)>;
  /// `registered`: what offer_memory() is about; it outlives this.
  StreamWorker(const RegisteredMemory& registered, Deliver deliver);
  ~StreamWorker() override;

  /// Opens a listener, whose address() then says where it is and which secret lets in.
  Status listen(const StreamOptions& options);
  [[nodiscard]] const Bytes& address() const noexcept;
  /// A link over a connection that has been proven.
  std::shared_ptr<StreamLink> adopt(std::unique_ptr<ByteStream> stream);
  /// A link to another worker's listener. Returns at once; what is sent meanwhile waits. `who`: names the other side in
  /// errors. kProtocol: that is not an address.
  Result<std::shared_ptr<StreamLink>> connect(ByteView address, std::string who);
  /// Names those that connect() has to reach yet, or that have to reach us as well: none once all links are up both
  /// ways, or have failed.
  [[nodiscard]] std::vector<std::string> awaited() const;
  /// The caller used a link outside of progress(): what waits for room is not forgotten.
  void touch(StreamLink& link);
  /// The caller needs the link no more; other than its last owner's, says goodbye.
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
