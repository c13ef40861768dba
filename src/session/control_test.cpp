// SPDX-License-Identifier: Apache-2.0
#include "session/control.hpp"

#include <gtest/gtest.h>

#include "base/cpu.hpp"

namespace wherry::session {
namespace {

Hello some_hello() {
  Hello m;
  m.host = host_identity();
  m.name = "test";
  m.pid = 42;
  m.transport = Transport::kTcp;
  return m;
}

/// Each proper prefix of a message, and a message with a byte too many, must be refused.
template <typename Decode>
void expect_no_prefix_parses(const Bytes& whole, Decode decode) {
  for (std::size_t n = 0; n < whole.size(); ++n) EXPECT_FALSE(decode(ByteView(whole).first(n))) << n;
  Bytes longer = whole;
  longer.push_back({});
  EXPECT_FALSE(decode(longer));
}

TEST(Control, HelloRoundTripsAndRefusesPrefixes) {
  const Bytes bytes = encode(some_hello());
  auto m = decode_hello(bytes);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->name, "test");
  EXPECT_EQ(m->transport, Transport::kTcp);
  expect_no_prefix_parses(bytes, decode_hello);
}

TEST(Control, HelloOfAnotherVersionIsReadAsFarAsItsVersion) {
  Hello m = some_hello();
  m.version = 99;
  Bytes bytes = encode(m);
  bytes.resize(bytes.size() + 10);  // a later version may say more
  auto decoded = decode_hello(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->version, 99U);
}

TEST(Control, GreetingAttachVerdictRequestResponseFailureRoundTrip) {
  Greeting greeting;
  greeting.session = 7;
  greeting.transport = Transport::kShm;
  greeting.worker_address = Bytes(100, std::byte{1});
  EXPECT_EQ(decode_greeting(encode(greeting))->worker_address, greeting.worker_address);
  expect_no_prefix_parses(encode(greeting), decode_greeting);

  Attach attach;
  attach.completions = {4096, 64 * 16, Bytes(11, std::byte{2})};
  attach.heap_probe = {8192, kProbeWords * 8, Bytes(11, std::byte{3})};
  attach.alloc_probe = attach.heap_probe;
  EXPECT_EQ(decode_attach(encode(attach))->completions.size, 64U * 16);
  expect_no_prefix_parses(encode(attach), decode_attach);
  attach.completions.size = 65;
  EXPECT_FALSE(decode_attach(encode(attach)));
  attach.completions.size = 64;
  attach.heap_probe.base = ~std::uint64_t{0} - 5;  // wraps
  EXPECT_FALSE(decode_attach(encode(attach)));

  VerdictMessage verdict{Verdict::kOneSided, Verdict::kEmulated, 1, 1, "cma"};
  EXPECT_EQ(decode_verdict(encode(verdict))->transports, "cma");
  expect_no_prefix_parses(encode(verdict), decode_verdict);

  Request request{9, "move", "open", Bytes(3, std::byte{4})};
  EXPECT_EQ(decode_request(encode(request))->method, "open");
  expect_no_prefix_parses(encode(request), decode_request);

  Response response{9, StatusCode::kNotFound, "no", {}};
  EXPECT_EQ(decode_response(encode(response))->code, StatusCode::kNotFound);
  expect_no_prefix_parses(encode(response), decode_response);

  Failure failure{StatusCode::kPermissionDenied, "wrong token"};
  EXPECT_EQ(decode_failure(encode(failure))->message, "wrong token");
  expect_no_prefix_parses(encode(failure), decode_failure);
  failure.code = StatusCode::kOk;
  EXPECT_FALSE(decode_failure(encode(failure)));
}

}  // namespace
}  // namespace wherry::session
