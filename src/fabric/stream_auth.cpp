// SPDX-License-Identifier: Apache-2.0
#include "fabric/stream_auth.hpp"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/secret.hpp"
#include "base/try.hpp"
#include "base/version.hpp"

namespace wherry::fabric {
namespace {

Bytes hmac(const Secret& secret, ByteView message) {
  Bytes out(StreamHandshake::kProof);
  unsigned length = 0;
  // Without memory HMAC() fails. Then `out` holds zeros, which must not be accepted as a proof.
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(out.data()), &length) == nullptr ||
      length != out.size())
    throw std::bad_alloc();
  return out;
}

ByteView view(std::string_view text) { return std::as_bytes(std::span(text)); }
void append(Bytes& to, ByteView more) { to.insert(to.end(), more.begin(), more.end()); }

Status not_the_handshake(ByteView got) {
  // A TLS record begins with a byte from 20 to 23, and then a version 3.x.
  if (got.size() >= 2 && got[0] >= std::byte{20} && got[0] <= std::byte{23} && got[1] == std::byte{3}) {
    return {StatusCode::kProtocol,
            "the other side speaks TLS, this one does not: give both a certificate authority (tls.ca, WHERRY_TLS_CA)"};
  }
  return {StatusCode::kProtocol, "the other side does not speak Wherry's handshake"};
}

Status other_version(std::uint16_t theirs) {
  return {StatusCode::kVersionMismatch,
          fmt::format("the other side speaks version {} of the handshake, this one (wherry {}) {}: install the same "
                      "version on both sides",
                      theirs, kVersion, StreamHandshake::kVersion)};
}

}  // namespace

Secret derive(const Secret& secret, std::string_view use, std::uint64_t number) {
  Bytes message;
  append(message, view(use));
  append(message, std::as_bytes(std::span(&number, 1)));
  const Bytes key = hmac(secret, message);
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

StreamHandshake StreamHandshake::client(Purpose purpose, std::uint64_t key, Secret secret, std::uint64_t from) {
  StreamHandshake h;
  h.purpose_ = purpose;
  h.key_ = key;
  h.from_ = from;
  h.secret_ = std::move(secret);
  Writer out;
  out.put(kMagic);
  out.put(kVersion);
  out.put(purpose);
  out.put(key);
  out.put(from);
  h.out_ = std::move(out).take();
  append(h.out_, random_bytes(kNonce));
  h.transcript_ = h.out_;
  h.step_ = Step::kAnswer;
  h.wanted_ = kAnswer;
  return h;
}

StreamHandshake StreamHandshake::server(Find find) {
  StreamHandshake h;
  h.find_ = std::move(find);
  h.wanted_ = kOpening;
  return h;
}

Bytes StreamHandshake::proof(std::string_view role, const Bytes& binding) const {
  Bytes message;
  append(message, view(role));
  append(message, transcript_);
  append(message, binding);
  return hmac(secret_, message);
}

Status StreamHandshake::on_opening() {
  Reader in(in_);
  if (in.get<std::uint32_t>() != kMagic) return not_the_handshake(in_);
  const auto version = in.get<std::uint16_t>();
  purpose_ = in.get<Purpose>();
  key_ = in.get<std::uint64_t>();
  from_ = in.get<std::uint64_t>();
  const bool refused = version != kVersion;
  Writer out;
  out.put(kMagic);
  out.put(kVersion);
  out.put(static_cast<std::uint16_t>(refused));
  Bytes answer = std::move(out).take();
  append(answer, random_bytes(kNonce));
  append(out_, answer);
  if (refused) return other_version(version);
  transcript_ = in_;
  append(transcript_, answer);
  const auto known = find_(purpose_, key_);
  const Bytes nobodys = random_bytes(kProof);
  secret_ = known ? *known : Secret(reinterpret_cast<const char*>(nobodys.data()), nobodys.size());
  step_ = Step::kProof;
  wanted_ = kProof;
  return ok_status();
}

Status StreamHandshake::on_answer(const Bytes& binding) {
  Reader in(in_);
  if (in.get<std::uint32_t>() != kMagic) return not_the_handshake(in_);
  const auto version = in.get<std::uint16_t>();
  const auto refused = in.get<std::uint16_t>();
  if (version != kVersion || refused != 0) return other_version(version);
  append(transcript_, in_);
  append(out_, proof("client", binding));
  step_ = Step::kVerdict;
  wanted_ = kVerdict;
  return ok_status();
}

Status StreamHandshake::on_proof(const Bytes& binding) {
  const bool right = equal_secrets(in_, proof("client", binding));
  Writer out;
  out.put(static_cast<std::uint64_t>(right ? 0 : 1));
  append(out_, out.bytes());
  append(out_, right ? proof("server", binding) : Bytes(kProof));
  step_ = Step::kDone;
  wanted_ = 0;
  return right ? ok_status() : Status(StatusCode::kPermissionDenied, "the client does not know the secret");
}

Status StreamHandshake::on_verdict(const Bytes& binding) {
  Reader in(in_);
  step_ = Step::kDone;
  wanted_ = 0;
  if (in.get<std::uint64_t>() != 0)
    return {StatusCode::kPermissionDenied, "wrong token: take it from the session file that this agent wrote"};
  if (equal_secrets(ByteView(in_).subspan(8), proof("server", binding))) return ok_status();
  return {StatusCode::kPermissionDenied, "the other side does not know the secret: it is the wrong process"};
}

Result<bool> StreamHandshake::take(ByteView bytes, const Bytes& binding) {
  append(in_, bytes);
  if (in_.size() > wanted_) return Status(StatusCode::kProtocol, "more than a step of the handshake takes");
  if (step_ == Step::kDone) return true;
  // Refuse at once a peer that does not send the expected magic number.
  std::uint32_t magic = 0;
  if ((step_ == Step::kOpening || step_ == Step::kAnswer) && in_.size() >= sizeof magic) {
    std::memcpy(&magic, in_.data(), sizeof magic);
    if (magic != kMagic) return not_the_handshake(in_);
  }
  if (in_.size() < wanted_) return false;
  Status s;
  switch (step_) {
    case Step::kOpening:
      s = on_opening();
      break;
    case Step::kAnswer:
      s = on_answer(binding);
      break;
    case Step::kProof:
      s = on_proof(binding);
      break;
    case Step::kVerdict:
      s = on_verdict(binding);
      break;
    case Step::kDone:
      break;
  }
  in_.clear();
  if (!s) return s;
  return step_ == Step::kDone;
}

Result<bool> StreamHandshake::advance(ByteStream& stream) {
  for (;;) {
    while (!out_.empty()) {
      const iovec part{out_.data(), out_.size()};
      const ByteStream::Moved moved = stream.write({&part, 1});
      if (moved.outcome == ByteStream::Outcome::kMoved) {
        out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(moved.bytes));
        continue;
      }
      if (!failure_) return failure_;  // it need not hear why
      if (moved.outcome == ByteStream::Outcome::kNotNow) return false;
      return Status(StatusCode::kUnavailable, stream.why());
    }
    if (!failure_) return failure_;
    if (step_ == Step::kDone) return true;
    std::array<std::byte, kOpening> buffer;
    const iovec part{buffer.data(), wanted()};
    const ByteStream::Moved moved = stream.read({&part, 1});
    if (moved.outcome == ByteStream::Outcome::kNotNow) return false;
    if (moved.outcome != ByteStream::Outcome::kMoved) {
      if (!in_.empty() && in_.size() < 8 && step_ != Step::kVerdict) {
        if (const Status s = not_the_handshake(in_); s.message().find("TLS") != std::string::npos) return s;
      }
      return Status(StatusCode::kUnavailable, stream.why());
    }
    // Bytes have arrived, so the TLS handshake is complete and the exporter exists.
    auto took = take(ByteView(buffer).first(moved.bytes), stream.binding());
    if (!took) failure_ = took.status();
  }
}

Status prove(ByteStream& stream, Purpose purpose, std::uint64_t key, const Secret& secret, const Deadline& deadline) {
  StreamHandshake handshake = StreamHandshake::client(purpose, key, secret);
  for (;;) {
    WHERRY_ASSIGN(auto done, handshake.advance(stream));
    if (done) return ok_status();
    if (deadline.passed())
      return {StatusCode::kDeadlineExceeded, "the other side did not answer the handshake in time"};
    const bool writes = !handshake.out().empty() || stream.read_needs_room();
    pollfd p{stream.fd(), static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN), 0};
    ::poll(&p, 1, deadline.left_ms(1000));
  }
}

}  // namespace wherry::fabric
