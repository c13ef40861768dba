// SPDX-License-Identifier: Apache-2.0
#include "session/control.hpp"

#include <fmt/core.h>

#include <array>

#include "fabric/mailbox.hpp"

namespace wherry::session {
namespace {

constexpr std::size_t kMaxText = 4096;      // names, tokens, versions, errors
constexpr std::size_t kMaxAddress = 65536;  // a UCX worker address; some hundred bytes a device
constexpr std::size_t kMaxKey = 4096;       // a packed remote key

Status malformed(const char* what) { return {StatusCode::kProtocol, fmt::format("malformed {} message", what)}; }

/// Reads a length-prefixed field. Fails the reader if the field is longer than any valid one.
Bytes bounded_bytes(Reader& in, std::size_t limit, bool& ok) {
  const ByteView raw = in.get_bytes();
  ok = ok && raw.size() <= limit;
  return {raw.begin(), raw.end()};
}
std::string bounded_string(Reader& in, bool& ok) {
  const ByteView raw = in.get_bytes();
  ok = ok && raw.size() <= kMaxText;
  return ok ? std::string(reinterpret_cast<const char*>(raw.data()), raw.size()) : std::string();
}
template <typename Enum>
Enum bounded_enum(Reader& in, Enum last, bool& ok) {
  const auto value = in.get<Enum>();
  ok = ok && value <= last;
  return value;
}
std::string text_cut(const std::string& text) { return text.substr(0, kMaxText); }

void put_key(Writer& out, const fabric::RemoteKey& key) {
  out.put(key.base);
  out.put(key.size);
  out.put_bytes(key.key);
}
fabric::RemoteKey get_key(Reader& in, bool& ok) {
  fabric::RemoteKey key;
  key.base = in.get<std::uint64_t>();
  key.size = in.get<std::uint64_t>();
  key.key = bounded_bytes(in, kMaxKey, ok);
  ok = ok && key.base + key.size >= key.base;
  return key;
}

}  // namespace

Bytes encode(const Hello& m) {
  Writer out;
  out.put(m.magic);
  out.put(m.version);
  out.put_string(m.host);
  out.put_string(text_cut(m.name));
  out.put(m.pid);
  out.put(m.transport);
  return std::move(out).take();
}

Result<Hello> decode_hello(ByteView bytes) {
  Reader in(bytes);
  bool ok = true;
  Hello m;
  m.magic = in.get<std::uint32_t>();
  m.version = in.get<std::uint32_t>();
  if (!in.ok() || m.magic != kMagic) return Status(StatusCode::kProtocol, "this is not a Wherry client");
  // Other versions may have different fields after this point, so the caller checks only the version.
  if (m.version != kProtocolVersion) return m;
  m.host = bounded_string(in, ok);
  m.name = bounded_string(in, ok);
  m.pid = in.get<std::uint32_t>();
  m.transport = bounded_enum(in, Transport::kRdma, ok);
  if (!ok || !in.at_end()) return malformed("hello");
  return m;
}

Bytes encode(const Greeting& m) {
  Writer out;
  out.put(m.session);
  out.put(m.link);
  out.put(m.transport);
  out.put_string(m.agent_version);
  out.put(m.pid);
  out.put(m.max_tickets);
  out.put_string(m.flight_uri);
  out.put_bytes(m.worker_address);
  return std::move(out).take();
}

Result<Greeting> decode_greeting(ByteView bytes) {
  Reader in(bytes);
  bool ok = true;
  Greeting m;
  m.session = in.get<std::uint64_t>();
  m.link = in.get<std::uint64_t>();
  m.transport = bounded_enum(in, Transport::kRdma, ok);
  m.agent_version = bounded_string(in, ok);
  m.pid = in.get<std::uint32_t>();
  m.max_tickets = in.get<std::uint32_t>();
  m.flight_uri = bounded_string(in, ok);
  m.worker_address = bounded_bytes(in, kMaxAddress, ok);
  if (!ok || !in.at_end()) return malformed("greeting");
  return m;
}

Bytes encode(const Attach& m) {
  Writer out;
  out.put_bytes(m.worker_address);
  put_key(out, m.completions);
  put_key(out, m.heap_probe);
  put_key(out, m.alloc_probe);
  put_key(out, m.mailbox);
  return std::move(out).take();
}

Result<Attach> decode_attach(ByteView bytes) {
  Reader in(bytes);
  bool ok = true;
  Attach m;
  m.worker_address = bounded_bytes(in, kMaxAddress, ok);
  m.completions = get_key(in, ok);
  m.heap_probe = get_key(in, ok);
  m.alloc_probe = get_key(in, ok);
  m.mailbox = get_key(in, ok);
  const bool sizes = m.heap_probe.size >= kProbeWords * 8 && m.alloc_probe.size >= kProbeWords * 8 &&
                     m.completions.size % sizeof(CompletionRecord) == 0 && m.completions.size > 0 &&
                     m.completions.base % alignof(CompletionRecord) == 0 &&  // the agent stores into them
                     !m.completions.key.empty() && !m.heap_probe.key.empty() && !m.alloc_probe.key.empty() &&
                     (m.mailbox.size == 0 || (fabric::Mailbox::valid_size(m.mailbox.size) && !m.mailbox.key.empty()));
  if (!ok || !in.at_end() || !sizes) return malformed("attach");
  return m;
}

Bytes encode(const VerdictMessage& m) {
  Writer out;
  out.put(m.heap);
  out.put(m.allocated);
  out.put(m.mapped);
  out.put(m.mailbox);
  out.put_string(m.transports);
  return std::move(out).take();
}

Result<VerdictMessage> decode_verdict(ByteView bytes) {
  Reader in(bytes);
  bool ok = true;
  VerdictMessage m;
  m.heap = bounded_enum(in, Verdict::kOneSided, ok);
  m.allocated = bounded_enum(in, Verdict::kOneSided, ok);
  m.mapped = in.get<std::uint8_t>();
  m.mailbox = in.get<std::uint8_t>();
  m.transports = bounded_string(in, ok);
  if (!ok || !in.at_end()) return malformed("verdict");
  return m;
}

Bytes encode(const Request& m) {
  Writer out;
  out.put(m.id);
  out.put_string(m.service);
  out.put_string(m.method);
  out.put_bytes(m.payload);
  return std::move(out).take();
}

Result<Request> decode_request(ByteView bytes) {
  Reader in(bytes);
  bool ok = true;
  Request m;
  m.id = in.get<std::uint64_t>();
  m.service = bounded_string(in, ok);
  m.method = bounded_string(in, ok);
  m.payload = bounded_bytes(in, bytes.size(), ok);
  if (!ok || !in.at_end()) return malformed("request");
  return m;
}

Bytes encode(const Response& m) {
  Writer out;
  out.put(m.id);
  out.put(m.code);
  out.put_string(text_cut(m.message));
  out.put_bytes(m.payload);
  return std::move(out).take();
}

Result<Response> decode_response(ByteView bytes) {
  Reader in(bytes);
  bool ok = true;
  Response m;
  m.id = in.get<std::uint64_t>();
  m.code = bounded_enum(in, StatusCode::kInternal, ok);
  m.message = bounded_string(in, ok);
  m.payload = bounded_bytes(in, bytes.size(), ok);
  if (!ok || !in.at_end()) return malformed("response");
  return m;
}

Bytes encode(const Failure& m) {
  Writer out;
  out.put(m.code);
  out.put_string(text_cut(m.message));
  return std::move(out).take();
}

Result<Failure> decode_failure(ByteView bytes) {
  Reader in(bytes);
  bool ok = true;
  Failure m;
  m.code = bounded_enum(in, StatusCode::kInternal, ok);
  m.message = bounded_string(in, ok);
  if (!ok || !in.at_end() || m.code == StatusCode::kOk) return malformed("failure");
  return m;
}

}  // namespace wherry::session
