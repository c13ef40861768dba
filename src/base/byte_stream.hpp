// SPDX-License-Identifier: Apache-2.0
// A connection as a stream of bytes that never blocks: a socket, a socket under TLS, or a test's memory.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.hpp"
#include "base/fd.hpp"

namespace wherry {

/// One thread at a time.
class ByteStream {
 public:
  enum class Outcome : std::uint8_t {
    kMoved,       ///< `bytes` > 0 went
    kNotNow,      ///< none can now
    kClosed,      ///< none ever will; why() says more
    kUnreadable,  ///< write only: some of the memory that was to be written cannot be read; the stream goes on
  };
  struct Moved {
    Outcome outcome = Outcome::kNotNow;
    std::size_t bytes = 0;
  };
  virtual ~ByteStream() = default;
  virtual Moved read(std::span<const iovec> to) noexcept = 0;
  virtual Moved write(std::span<const iovec> from) noexcept = 0;
  /// A descriptor that becomes readable when read() should be called. -1: there is none.
  [[nodiscard]] virtual int fd() const noexcept = 0;
  /// Whether read() must wait until the descriptor is writable, as TLS may require.
  [[nodiscard]] virtual bool read_needs_room() const noexcept { return false; }
  /// "tcp", "unix", "tcp+tls".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// A secret that only the two ends of the TLS connection know; empty without TLS.
  [[nodiscard]] virtual Bytes binding() { return {}; }
  /// The reason why the stream is closed.
  [[nodiscard]] virtual std::string why() const = 0;
};

/// Wraps a connected socket and makes it non-blocking. Network sockets get TCP_NODELAY and keep-alive.
std::unique_ptr<ByteStream> plain_stream(Fd socket);

}  // namespace wherry
