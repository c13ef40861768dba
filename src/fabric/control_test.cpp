// SPDX-License-Identifier: Apache-2.0
#include "fabric/control.hpp"

#include <gtest/gtest.h>

#include "base/cpu.hpp"
#include "fabric/session_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace wherry::fabric {
namespace {

Hello some_hello() {
  Hello m;
  m.token = "secret";
  m.host = host_identity();
  m.name = "test";
  m.pid = 42;
  m.transport = Transport::kTcp;
  return m;
}

/// Every proper prefix and every single-byte truncation of a message must be refused, not misread.
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
  EXPECT_EQ(m->token, "secret");
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

TEST(Control, SecretsCompareInFull) {
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "ab"));
  EXPECT_FALSE(equal_secrets("", "a"));
  EXPECT_EQ(make_token().size(), 32U);
  EXPECT_NE(make_token(), make_token());
}

class SessionFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "wherry-test-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::filesystem::path directory_;
};

TEST_F(SessionFileTest, IsPrivateCompleteAndRemovedByItsOwnerOnly) {
  const std::string path = directory_ / "sub" / "agent.json";
  ASSERT_TRUE(prepare_session_file(path));
  SessionFile file;
  file.pid = getpid();
  file.host = "127.0.0.1";
  file.port = 4100;
  file.token = "t";
  ASSERT_TRUE(write_session_file(path, file));
  struct stat info{};
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  auto read = read_session_file(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->port, 4100);
  remove_session_file(path, getpid() + 1);
  EXPECT_TRUE(std::filesystem::exists(path));
  remove_session_file(path, getpid());
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(SessionFileTest, SaysWhatIsWrong) {
  const std::string path = directory_ / "agent.json";
  EXPECT_EQ(read_session_file(path).status().code(), StatusCode::kNotFound);
  std::ofstream(path) << "not json";
  EXPECT_EQ(read_session_file(path).status().code(), StatusCode::kProtocol);
  std::ofstream(path) << R"({"version":1,"pid":"x"})";
  EXPECT_EQ(read_session_file(path).status().code(), StatusCode::kProtocol);
  SessionFile file;
  file.pid = 0x3fffffff;  // no such process
  ASSERT_TRUE(write_session_file(path, file));
  EXPECT_EQ(read_session_file(path).status().code(), StatusCode::kUnavailable);
  file.pid = 1;  // lives, and is not this process
  ASSERT_TRUE(write_session_file(path, file));
  EXPECT_EQ(prepare_session_file(path).code(), StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace wherry::fabric
