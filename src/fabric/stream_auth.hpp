// SPDX-License-Identifier: Apache-2.0
// Authenticates a connection: both sides prove that they know a secret before anything else is read.
//
//   client                                              server
//     opening (purpose, which secret, who, nonce) ->
//                                                 <-    answer (nonce), or its version and the end
//     HMAC(secret, "client", opening, answer)     ->
//                                                 <-    verdict, HMAC(secret, "server", opening, answer)
// All messages have fixed sizes. HMAC is HMAC-SHA-256; nonces have 32 bytes and are new for each connection, so a
// recorded exchange cannot be replayed. Under TLS the HMACs cover the connection's exporter (RFC 5705), so an attacker
// cannot relay them. The secret itself never travels.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/byte_stream.hpp"
#include "base/clock.hpp"
#include "wherry/status.hpp"

namespace wherry::fabric {

using Secret = std::string;

/// Derives a secret for one use from another secret.
Secret derive(const Secret& secret, std::string_view use, std::uint64_t number);

/// The purpose of a connection.
enum class Purpose : std::uint16_t {
  kControl = 1,  ///< a client's control connection
  kData,         ///< its data connection
  kPeer,         ///< of one process of a job to another
};

/// One side of the handshake. Only advance() does I/O. One thread.
class StreamHandshake {
 public:
  static constexpr std::uint32_t kMagic = 0x48535257;  // "WRSH"
  static constexpr std::uint16_t kVersion = 1;
  static constexpr std::size_t kNonce = 32;
  static constexpr std::size_t kOpening = 24 + kNonce;
  static constexpr std::size_t kAnswer = 8 + kNonce;
  static constexpr std::size_t kProof = 32;
  static constexpr std::size_t kVerdict = 8 + kProof;

  /// `key`: selects one of the server's secrets. `from`: identifies the client, if needed. Neither is secret.
  static StreamHandshake client(Purpose purpose, std::uint64_t key, Secret secret, std::uint64_t from = 0);
  /// `find` returns the secret for a purpose and a key. nullopt: the client is refused as for a wrong secret.
  using Find = std::function<std::optional<Secret>(Purpose, std::uint64_t)>;
  static StreamHandshake server(Find find);

  /// Advances the handshake as far as possible without waiting. True: it is done, and no byte after it was read. After
  /// an error, close the connection. kUnavailable: it is closed; kProtocol: the bytes are not a handshake;
  /// kVersionMismatch; kPermissionDenied.
  Result<bool> advance(ByteStream& stream);

  /// The parts of advance(), for tests: how many bytes the other side must send next, what they mean, and which bytes
  /// to send.
  [[nodiscard]] std::size_t wanted() const noexcept { return wanted_ - in_.size(); }
  Result<bool> take(ByteView bytes, const Bytes& binding);
  [[nodiscard]] Bytes& out() noexcept { return out_; }

  [[nodiscard]] Purpose purpose() const noexcept { return purpose_; }
  [[nodiscard]] std::uint64_t key() const noexcept { return key_; }
  [[nodiscard]] std::uint64_t from() const noexcept { return from_; }

 private:
  enum class Step : std::uint8_t { kOpening, kAnswer, kProof, kVerdict, kDone };
  Status on_opening();
  Status on_answer(const Bytes& binding);
  Status on_proof(const Bytes& binding);
  Status on_verdict(const Bytes& binding);
  [[nodiscard]] Bytes proof(std::string_view role, const Bytes& binding) const;
  Step step_ = Step::kOpening;
  std::size_t wanted_ = 0;
  Purpose purpose_ = Purpose::kControl;
  std::uint64_t key_ = 0, from_ = 0;
  Secret secret_;
  Find find_;
  Bytes in_, out_;
  Bytes transcript_;  ///< opening and answer
  Status failure_;    ///< known, but the other side has not been told all of it yet
};

/// Runs the client's side. Waits for the server at most until the deadline.
Status prove(ByteStream& stream, Purpose purpose, std::uint64_t key, const Secret& secret, const Deadline& deadline);

}  // namespace wherry::fabric
