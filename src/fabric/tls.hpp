// SPDX-License-Identifier: Apache-2.0
// TLS 1.3 for connections between machines. Certificates come from files, and both sides are checked.
#pragma once

#include <memory>
#include <string>

#include "base/byte_stream.hpp"
#include "wherry/status.hpp"

struct ssl_ctx_st;

namespace wherry::fabric {

/// PEM files. A server needs a certificate and a key. A client needs the authority that signed the server's
/// certificate. A server with an authority also requires a certificate of that authority from its clients.
struct TlsFiles {
  std::string certificate, key, ca;
  [[nodiscard]] bool any() const noexcept { return !certificate.empty() || !key.empty() || !ca.empty(); }
  friend bool operator==(const TlsFiles&, const TlsFiles&) = default;
};
/// $WHERRY_TLS_CERTIFICATE, $WHERRY_TLS_KEY, $WHERRY_TLS_CA.
TlsFiles tls_from_environment();

/// Immutable, so any thread may use it.
class Tls {
 public:
  /// Null if no file is named. kInvalidArgument: a file is missing or does not match the others.
  static Result<std::shared_ptr<const Tls>> server(const TlsFiles& files);
  static Result<std::shared_ptr<const Tls>> client(const TlsFiles& files);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Wraps a connection in TLS. Its first reads and writes do the handshake. A client refuses a server whose
  /// certificate is not for `host` (a name or an address).
  [[nodiscard]] Result<std::unique_ptr<ByteStream>> accept(Fd socket) const;
  [[nodiscard]] Result<std::unique_ptr<ByteStream>> connect(Fd socket, const std::string& host) const;

 private:
  Tls() = default;
  static Result<std::shared_ptr<const Tls>> make(const TlsFiles& files, bool server);
  ssl_ctx_st* context_ = nullptr;
};

}  // namespace wherry::fabric
