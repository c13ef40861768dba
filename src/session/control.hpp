// SPDX-License-Identifier: Apache-2.0
// The control protocol between client and agent, over a Unix socket or TCP, before and beside the fabric. Messages are
// rare. Every decoder parses untrusted bytes: it returns kProtocol if they do not parse, and never crashes.
//
//   client                                  agent
//     (each proves that it knows the token: stream_auth.hpp)
//     Hello  (version, who)           ->
//                                     <-    Greeting (session, transport, agent's worker address), or Failure and close
//     (kTcp: a second connection, proven with token and session, for data)
//     Attach (worker address, keys)   ->
//     message on the fabric           ->
//                                     <-    put into the first completion record, then Attached
//     Asleep (no payload)             ->    only now: a client still awake would help
//     sleeps in recv, no progress           gets from the client's memory
//                                     <-    Verdict
//     Request (id, service, method)   ->
//                                     <-    Response (id, status, bytes)     any number of times
//                                     <-    Failure: the session is over, and why
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.hpp"
#include "fabric/fabric.hpp"
#include "wherry/session.hpp"

namespace wherry::session {

inline constexpr std::uint32_t kMagic = 0x59524857;  // "WHRY"
/// Incremented with every change of a control or data message. Client and agent must have the same version.
inline constexpr std::uint32_t kProtocolVersion = 8;
inline constexpr unsigned kPingMessage = 0;  ///< active message ids: 0 is the fabric's, services take 1 and up

enum class ControlType : std::uint16_t {
  kHello = 1,
  kGreeting,
  kAttach,
  kAttached,
  kAsleep,
  kVerdict,
  kRequest,
  kResponse,
  kFailure,
};

struct Hello {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kProtocolVersion;
  std::string host;  ///< host_identity()
  std::string name;
  std::uint32_t pid = 0;  ///< for logs, of clients on other machines; of others the kernel tells (SO_PEERCRED)
  Transport transport = Transport::kAuto;
};

struct Greeting {
  std::uint64_t session = 0;  ///< secret: it authenticates messages on the fabric, and the data connection
  std::uint64_t link = 0;     ///< names the session where its data connection is made (Transport::kTcp); not a secret
  Transport transport = Transport::kAuto;
  std::string agent_version;
  std::uint32_t pid = 0;
  std::uint32_t max_tickets = 0;
  std::string flight_uri;
  Bytes worker_address;
};

/// One ticket's outcome, in the client's memory. The agent writes the other fields first and `word` last.
struct alignas(64) CompletionRecord {
  std::uint64_t word = 0;  ///< ticket << 8 | StatusCode; ticket ids start at 1
  std::uint64_t transfer_ns = 0;
  std::uint64_t sequence = 0;
  std::uint64_t detail = 0;  ///< index of the buffer at fault, or what the code says
  std::uint64_t reserved[4] = {};
};
static_assert(sizeof(CompletionRecord) == 64);

struct Attach {
  Bytes worker_address;
  fabric::RemoteKey completions;  ///< max_tickets CompletionRecords, in memory that Wherry allocated
  fabric::RemoteKey heap_probe;   ///< ordinary heap memory
  fabric::RemoteKey alloc_probe;  ///< memory that Wherry allocated
  fabric::RemoteKey mailbox;  ///< a Mailbox ring that the client writes, in memory that Wherry allocated; size 0: none
};
/// Words in a probe. The probes hold a pattern, so that a get without data is detected.
inline constexpr std::uint64_t kProbeWords = 512;
constexpr std::uint64_t probe_word(std::uint64_t session, std::uint64_t index) {
  return session * 0x9E3779B97F4A7C15U + index;
}

struct VerdictMessage {
  Verdict heap = Verdict::kEmulated;
  Verdict allocated = Verdict::kEmulated;
  std::uint8_t mapped = 0;
  std::uint8_t mailbox = 0;  ///< the agent reads the client's mailbox: data messages go there, not over the fabric
  std::string transports;
};

struct Request {
  std::uint64_t id = 0;
  std::string service;
  std::string method;
  Bytes payload;
};

struct Response {
  std::uint64_t id = 0;
  StatusCode code = StatusCode::kOk;
  std::string message;
  Bytes payload;
};

struct Failure {
  StatusCode code = StatusCode::kInternal;
  std::string message;
};

Bytes encode(const Hello& m);
Bytes encode(const Greeting& m);
Bytes encode(const Attach& m);
Bytes encode(const VerdictMessage& m);
Bytes encode(const Request& m);
Bytes encode(const Response& m);
Bytes encode(const Failure& m);

Result<Hello> decode_hello(ByteView in);
Result<Greeting> decode_greeting(ByteView in);
Result<Attach> decode_attach(ByteView in);
Result<VerdictMessage> decode_verdict(ByteView in);
Result<Request> decode_request(ByteView in);
Result<Response> decode_response(ByteView in);
Result<Failure> decode_failure(ByteView in);

}  // namespace wherry::session
