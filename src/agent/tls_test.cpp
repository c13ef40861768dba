// SPDX-License-Identifier: Apache-2.0
// Tests clients that connect to their agent over TLS, and pairs where only one side uses TLS.
#include "agent/testing.hpp"
#include "base/testing.hpp"
#include "fabric/tls_testing.hpp"

namespace wherry {
namespace {

using fabric::TlsFiles;
using testing_support::kPatience;
using testing_support::ThreadAgent;
using namespace std::chrono_literals;

class SessionTls : public testing::Test {
 protected:
  /// A certificate that `authority` issued for `subject`, and the authority's own certificate.
  static TlsFiles files(const std::string& authority, const std::string& subject = "IP:127.0.0.1") {
    static testing_support::Certificates made;
    static int count = 0;
    return made.files(authority, authority + "-" + std::to_string(++count), subject);
  }
  static AgentConfig with(const TlsFiles& tls) { return {.listen = "127.0.0.1:0", .tls = tls}; }
  static Result<Session> open(ThreadAgent& agent, const TlsOptions& tls) {
    SessionOptions options;
    options.agent = agent.agent().address();
    options.token = agent.agent().token();
    options.tls = tls;
    return Session::open(options);
  }
  static TlsOptions options(const TlsFiles& files) {
    return {.ca = files.ca, .certificate = files.certificate, .key = files.key};
  }
  static void expect_offload(Session& session, const std::string& name) {
    EXPECT_EQ(session.info().transports, "stream/tcp+tls");
    auto stream = Stream::open(session, {.name = name}, {field<double>("x")});
    ASSERT_TRUE(stream) << stream.status().message();
    const std::vector<double> x(100'000, 1.0);
    const Status s = stream->post({Column(x)})->wait(kPatience);
    EXPECT_TRUE(s) << s.message();
  }
  static void expect_words(const Status& status, std::initializer_list<const char*> words) {
    EXPECT_FALSE(status);
    for (const char* word : words) EXPECT_NE(status.message().find(word), std::string::npos) << status.message();
  }
};

TEST_F(SessionTls, BothHaveCertificatesOfOneAuthority_ExpectOffloadsUnderTls) {
  ThreadAgent agent(with(files("authority")));
  auto session = open(agent, options(files("authority")));
  ASSERT_TRUE(session) << session.status().message();
  expect_offload(*session, "both");
}

TEST_F(SessionTls, AnAgentThatAsksForNoCertificates_ExpectTheAuthorityToSuffice) {
  const TlsFiles mine = files("authority");
  ThreadAgent agent(with({mine.certificate, mine.key, {}}));
  auto session = open(agent, {.ca = mine.ca});
  ASSERT_TRUE(session) << session.status().message();
  expect_offload(*session, "one");
}

TEST_F(SessionTls, FilesFromTheEnvironment_ExpectTheSame) {
  const TlsFiles mine = files("authority"), theirs = files("authority");
  ThreadAgent agent(with(theirs));
  setenv("WHERRY_TLS_CA", mine.ca.c_str(), 1);
  setenv("WHERRY_TLS_CERTIFICATE", mine.certificate.c_str(), 1);
  setenv("WHERRY_TLS_KEY", mine.key.c_str(), 1);
  auto session = open(agent, {});
  for (const char* name : {"WHERRY_TLS_CA", "WHERRY_TLS_CERTIFICATE", "WHERRY_TLS_KEY"}) unsetenv(name);
  ASSERT_TRUE(session) << session.status().message();
  expect_offload(*session, "environment");
}

TEST_F(SessionTls, TheAgentsCertificateIsWrong_ExpectRefusalWithTheReason) {
  const TlsFiles mine = files("authority");
  for (const auto& [wrong, reason] : {std::pair(files("stranger"), "certificate is refused"),
                                      std::pair(files("authority", "IP:192.0.2.1"), "mismatch")}) {
    ThreadAgent agent(with({wrong.certificate, wrong.key, {}}));
    expect_words(open(agent, {.ca = mine.ca}).status(), {"TLS", reason, "127.0.0.1"});
  }
}

TEST_F(SessionTls, TheClientsCertificateIsMissingOrOfAnotherAuthority_ExpectRefusalAndTheAgentToServeOn) {
  const TlsFiles right = files("authority"), wrong = files("stranger");
  ThreadAgent agent(with(files("authority")));
  expect_words(open(agent, {.ca = right.ca}).status(), {"TLS", "certificate", "WHERRY_TLS_CERTIFICATE"});
  expect_words(open(agent, {.ca = right.ca, .certificate = wrong.certificate, .key = wrong.key}).status(),
               {"TLS", "certificate", "authority"});
  auto session = open(agent, options(right));
  ASSERT_TRUE(session) << session.status().message();
  expect_offload(*session, "after");
}

TEST_F(SessionTls, OnlyTheAgentHasTls_ExpectTheClientToLearnThat) {
  ThreadAgent agent(with(files("authority")));
  expect_words(open(agent, {}).status(), {"the other side speaks TLS", "WHERRY_TLS_CA"});
}

TEST_F(SessionTls, OnlyTheClientHasTls_ExpectItToLearnThat) {
  ThreadAgent agent({.listen = "127.0.0.1:0"});
  expect_words(open(agent, options(files("authority"))).status(), {"TLS", "does the other side use TLS"});
}

TEST_F(SessionTls, AFileOfTheClientIsMissing_ExpectItsName) {
  ThreadAgent agent(with(files("authority")));
  expect_words(open(agent, {.ca = "/nowhere.pem"}).status(), {"/nowhere.pem"});
}

}  // namespace
}  // namespace wherry
