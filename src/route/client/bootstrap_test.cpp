// SPDX-License-Identifier: Apache-2.0
// Tests ranks and the environment variables; the test acts as the launcher. python/tests/test_launcher.py tests the
// real launcher, test_mpi.py tests MPI, test_pmix.py tests PMIx.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/frame_channel.hpp"
#include "base/temporary_directory.hpp"
#include "base/testing.hpp"
#include "route/client/bootstrap_parts.hpp"
#include "route/client/bootstrap_protocol.hpp"
#include "route/client/meeting.hpp"

namespace wherry::route {
namespace {

using wherry::testing_support::kPatience;
using namespace std::chrono_literals;

const std::vector<const char*> kVariables{
    "WHERRY_BOOTSTRAP", "WHERRY_JOB_KEY",        "WHERRY_RANK",          "WHERRY_RANKS",
    "WHERRY_NODE",      "WHERRY_RANKS_PER_NODE", "WHERRY_MPI_PLUGIN",    "PMI_RANK",
    "PMI_SIZE",         "OMPI_COMM_WORLD_RANK",  "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",
    "SLURM_PROCID",     "SLURM_STEP_NUM_TASKS",  "PMIX_NAMESPACE",       "WHERRY_PMIX_LIBRARY"};

/// The launcher's end of one rank's connection.
class Peer {
 public:
  explicit Peer(Fd socket) : channel_(std::move(socket)) {}
  ControlFrame receive(LauncherFrame type) {
    auto frame = channel_.receive(Deadline(kPatience));
    EXPECT_TRUE(frame) << frame.status().message();
    if (!frame) return {};
    EXPECT_EQ(frame->type, static_cast<std::uint16_t>(type));
    return *std::move(frame);
  }
  void send(LauncherFrame type, const Writer& payload) {
    EXPECT_TRUE(channel_.send(static_cast<std::uint16_t>(type), payload.bytes(), Deadline(kPatience)));
  }
  void welcome(std::uint64_t job) {
    Writer out;
    out.put(job);
    send(LauncherFrame::kWelcome, out);
  }
  /// Sends the contributions of the ranks from `first` on.
  void gathered(std::uint32_t round, std::uint32_t first, const std::vector<Bytes>& part) {
    Writer out;
    out.put(round);
    out.put(first);
    out.put(static_cast<std::uint32_t>(part.size()));
    for (const Bytes& bytes : part) out.put_bytes(bytes);
    send(LauncherFrame::kGathered, out);
  }
  void abort(const std::string& why) {
    Writer out;
    out.put_string(why);
    send(LauncherFrame::kAbort, out);
  }

 private:
  FrameChannel channel_;
};

class Bootstrapping : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) ::unsetenv(name);
    path_ = directory_ + "/socket";
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_.get(), 8), 0);
  }
  void TearDown() override {
    for (const char* name : kVariables) ::unsetenv(name);
  }

  void set_environment(int rank, int ranks, int node) {
    ::setenv("WHERRY_BOOTSTRAP", path_.c_str(), 1);
    ::setenv("WHERRY_JOB_KEY", "0123abcd", 1);
    ::setenv("WHERRY_RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WHERRY_RANKS", std::to_string(ranks).c_str(), 1);
    ::setenv("WHERRY_NODE", std::to_string(node).c_str(), 1);
  }
  /// Makes a rank that has joined, and the launcher's end of its connection.
  void join(int rank, int ranks) {
    set_environment(rank, ranks, 0);
    std::thread launcher([&] {
      peers_.emplace_back(Fd(::accept(listener_.get(), nullptr, nullptr)));
      const ControlFrame joined = peers_.back().receive(LauncherFrame::kJoin);
      Reader in(joined.payload);
      EXPECT_EQ(in.get<std::uint32_t>(), kLauncherProtocol);
      EXPECT_EQ(in.get_string(), "0123abcd");
      EXPECT_EQ(in.get<std::uint32_t>(), static_cast<std::uint32_t>(rank));
      EXPECT_TRUE(in.at_end());
      peers_.back().welcome(4711);
    });
    auto found = find_bootstrap(Deadline(kPatience));
    launcher.join();
    ASSERT_TRUE(found) << found.status().message();
    ASSERT_NE(*found, nullptr);
    ranks_.push_back(*std::move(found));
  }
  /// The status of an exchange in a job of one rank, where the launcher calls `answer` after its contribution.
  Status exchange_when(const std::function<void(Peer&)>& answer) {
    std::thread launcher([&] {
      peers_[0].receive(LauncherFrame::kContribute);
      answer(peers_[0]);
    });
    const Status s = ranks_[0]->exchange({}, Deadline(kPatience)).status();
    launcher.join();
    return s;
  }

  TemporaryDirectory temporary_ = *TemporaryDirectory::create("bootstrap");
  std::string directory_ = temporary_.path();
  std::string path_;
  Fd listener_;
  std::vector<Peer> peers_;
  std::vector<std::unique_ptr<Bootstrap>> ranks_;
};

Bytes bytes(const char* text) {
  const ByteView view = std::as_bytes(std::span(text, std::strlen(text)));
  return {view.begin(), view.end()};
}

TEST_F(Bootstrapping, NoLauncher_ExpectNoBootstrap) {
  const auto found = find_bootstrap(Deadline(1s));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, nullptr);
}

TEST_F(Bootstrapping, ContributionsOfAllRanks_ExpectThemInTheOrderOfRanks) {
  join(1, 3);
  EXPECT_EQ(ranks_[0]->rank(), 1U);
  EXPECT_EQ(ranks_[0]->ranks(), 3U);
  EXPECT_EQ(ranks_[0]->job(), 4711U);
  const std::vector<Bytes> expected{bytes("zero"), bytes(""), bytes("two")};
  for (std::uint32_t round = 0; round < 2; ++round) {
    std::thread launcher([&] {
      const ControlFrame contributed = peers_[0].receive(LauncherFrame::kContribute);
      Reader in(contributed.payload);
      EXPECT_EQ(in.get<std::uint32_t>(), round);
      EXPECT_EQ(in.get_string(), "mine");
      if (round == 0) {
        peers_[0].gathered(round, 0, expected);
      } else {
        peers_[0].gathered(round, 0, {expected[0]});
        peers_[0].gathered(round, 1, {expected[1], expected[2]});
      }
    });
    const auto all = ranks_[0]->exchange(bytes("mine"), Deadline(kPatience));
    launcher.join();
    ASSERT_TRUE(all) << all.status().message();
    EXPECT_EQ(*all, expected);
    EXPECT_TRUE(ranks_[0]->health());
  }
}

TEST_F(Bootstrapping, AbortDuringAnExchange_ExpectItsReasonFromThenOn) {
  join(0, 2);
  const Status s = exchange_when([](Peer& peer) { peer.abort("rank 1 was killed by signal 9 (SIGKILL)"); });
  EXPECT_EQ(s.code(), StatusCode::kUnavailable);
  EXPECT_EQ(s.message(), "rank 1 was killed by signal 9 (SIGKILL)");
  EXPECT_EQ(ranks_[0]->health().message(), s.message());
  EXPECT_EQ(ranks_[0]->exchange({}, Deadline(1s)).status().message(), s.message());
}

TEST_F(Bootstrapping, AbortWhileRunning_ExpectItsReasonFromHealth) {
  join(0, 2);
  EXPECT_TRUE(ranks_[0]->health());
  peers_[0].abort("the agent of node 1 exited with status 1");
  peers_.clear();  // and closes the connection at once
  Status s;
  for (const Deadline deadline(kPatience); s && !deadline.passed();) s = ranks_[0]->health();
  EXPECT_EQ(s.code(), StatusCode::kUnavailable);
  EXPECT_EQ(s.message(), "the agent of node 1 exited with status 1");
  EXPECT_EQ(ranks_[0]->health().message(), s.message());
}

TEST_F(Bootstrapping, LauncherEnds_ExpectUnavailable) {
  join(0, 2);
  peers_.clear();
  Status s;
  for (const Deadline deadline(kPatience); s && !deadline.passed();) s = ranks_[0]->health();
  EXPECT_EQ(s.code(), StatusCode::kUnavailable);
  EXPECT_NE(s.message().find("the launcher is gone"), std::string::npos) << s.message();
}

TEST_F(Bootstrapping, LauncherEndsDuringAnExchange_ExpectUnavailable) {
  join(0, 2);
  const Status s = exchange_when([&](Peer&) { peers_.clear(); });
  EXPECT_EQ(s.code(), StatusCode::kUnavailable);
}

TEST_F(Bootstrapping, OtherRanksDoNotCome_ExpectDeadlineExceeded) {
  join(0, 2);
  const Status s = ranks_[0]->exchange({}, Deadline(50ms)).status();
  EXPECT_EQ(s.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(s.message().find("rank 0"), std::string::npos);
  EXPECT_EQ(ranks_[0]->health().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(Bootstrapping, MalformedAnswers_ExpectErrors) {
  const std::vector<std::function<void(Peer&)>> nonsense{
      [](Peer& peer) { peer.gathered(1, 0, {{}, {}}); },      // another round
      [](Peer& peer) { peer.gathered(0, 1, {{}}); },          // not from rank 0 on
      [](Peer& peer) { peer.gathered(0, 0, {{}, {}, {}}); },  // of more ranks than there are
      [](Peer& peer) { peer.gathered(0, 0, {}); },            // of none
      [](Peer& peer) { peer.welcome(1); },                    // not now
      [](Peer& peer) { peer.send(LauncherFrame{77}, {}); },
      [](Peer& peer) { peer.send(LauncherFrame::kGathered, {}); },
  };
  for (std::size_t i = 0; i < nonsense.size(); ++i) {
    join(0, 2);
    EXPECT_EQ(exchange_when(nonsense[i]).code(), StatusCode::kProtocol) << i;
    ranks_.clear();
    peers_.clear();
  }
}

TEST_F(Bootstrapping, AbortWithoutReasonOrWithControlCharacters_ExpectOneLine) {
  EXPECT_EQ(decode_abort({}), "the launcher ended the job");
  Writer out;
  out.put_string("a\nb\x1b[31m");
  EXPECT_EQ(decode_abort(out.bytes()), "a b [31m");
}

TEST_F(Bootstrapping, VariablesMissingOrMalformed_ExpectThemNamed) {
  const auto expect_named = [&](const char* name, const char* value) {
    set_environment(1, 4, 1);
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
    const auto found = find_bootstrap(Deadline(1s));
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument) << name;
    EXPECT_NE(found.status().message().find(name), std::string::npos) << found.status().message();
  };
  for (const char* name : {"WHERRY_RANK", "WHERRY_RANKS", "WHERRY_NODE", "WHERRY_JOB_KEY"}) expect_named(name, nullptr);
  for (const char* name : {"WHERRY_RANK", "WHERRY_RANKS", "WHERRY_NODE"}) {
    for (const char* value : {"x", "-1", "1.5", "99999999999", "3 "}) expect_named(name, value);
  }
  expect_named("WHERRY_RANK", "4");
  expect_named("WHERRY_RANKS", "0");
  expect_named("WHERRY_JOB_KEY", "not hex");
  expect_named("WHERRY_BOOTSTRAP", std::string(300, 'x').c_str());
}

TEST_F(Bootstrapping, NoLauncherAtThePath_ExpectThePathNamed) {
  set_environment(0, 1, 0);
  ::setenv("WHERRY_BOOTSTRAP", (directory_ + "/nobody").c_str(), 1);
  const auto found = find_bootstrap(Deadline(1s));
  EXPECT_EQ(found.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(found.status().message().find(directory_ + "/nobody"), std::string::npos);
}

TEST(Nodes, RanksOnSeveralHosts_ExpectNodesNumberedInTheOrderOfRanks) {
  using Numbers = std::vector<std::uint32_t>;
  EXPECT_EQ(number_nodes({"b", "a", "b", "c", "a"}, 0), (Numbers{0, 1, 0, 2, 1}));
  EXPECT_EQ(number_nodes({"a", "a", "a", "a", "a"}, 2), (Numbers{0, 0, 1, 1, 2}));
  EXPECT_EQ(number_nodes({"a", "b", "a", "b", "a"}, 2), (Numbers{0, 1, 0, 1, 2}));
}

TEST_F(Bootstrapping, VariablesOfMpiLaunchers_ExpectThemRecognised) {
  EXPECT_FALSE(find_mpi_launcher());
  const auto with = [](std::vector<std::pair<const char*, const char*>> variables) {
    for (const char* name : kVariables) ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name, value, 1);
    const auto found = find_mpi_launcher();
    return found ? found->variable + " " + (found->ranks ? std::to_string(*found->ranks) : "?") : "none";
  };
  EXPECT_EQ(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}}), "PMI_SIZE 4");
  EXPECT_EQ(with({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}}), "none");
  EXPECT_EQ(with({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "1"}}),
            "OMPI_COMM_WORLD_SIZE 2");
  EXPECT_EQ(with({{"PMIX_RANK", "3"}}), "PMIX_RANK ?");
  EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}}), "SLURM_STEP_NUM_TASKS 8");
  EXPECT_EQ(with({{"SLURM_PROCID", "0"}}), "none") << "the job script itself";
  EXPECT_EQ(with({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}), "none");
}

TEST_F(Bootstrapping, PmixServer_ExpectItBeforeMpiUnlessMpiIsAskedFor) {
  ::setenv("PMIX_RANK", "0", 1);
  EXPECT_FALSE(find_pmix_server());
  ::setenv("PMIX_NAMESPACE", "job", 1);
  EXPECT_TRUE(find_pmix_server());
  ::setenv("WHERRY_PMIX_LIBRARY", "/nonexistent/libpmix.so", 1);
  ::setenv("WHERRY_MPI_PLUGIN", "/nonexistent/libwherry_mpi.so", 1);
  const auto expect_only = [](const char* asked, bool pmix, bool mpi) {
    asked == nullptr ? ::unsetenv("WHERRY_BOOTSTRAP") : ::setenv("WHERRY_BOOTSTRAP", asked, 1);
    const auto found = find_bootstrap(Deadline(1s));
    EXPECT_EQ(found.status().code(), StatusCode::kNotFound) << found.status().message();
    EXPECT_EQ(found.status().message().find("/nonexistent/libpmix.so") != std::string::npos, pmix);
    EXPECT_EQ(found.status().message().find("/nonexistent/libwherry_mpi.so") != std::string::npos, mpi);
  };
  expect_only(nullptr, true, true);
  expect_only("pmix", true, false);
  expect_only("mpi", false, true);
}

TEST_F(Bootstrapping, LibpmixOfNoPmix_ExpectVersionMismatch) {
  ::setenv("PMIX_RANK", "0", 1);
  ::setenv("PMIX_NAMESPACE", "job", 1);
  ::setenv("WHERRY_BOOTSTRAP", "pmix", 1);
  ::setenv("WHERRY_PMIX_LIBRARY", "libm.so.6", 1);
  EXPECT_EQ(find_bootstrap(Deadline(1s)).status().code(), StatusCode::kVersionMismatch);
}

TEST_F(Bootstrapping, PmixAskedForWithoutServer_ExpectInvalidArgument) {
  ::setenv("WHERRY_BOOTSTRAP", "pmix", 1);
  const auto found = find_bootstrap(Deadline(1s));
  EXPECT_EQ(found.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(found.status().message().find("PMIX_NAMESPACE and PMIX_RANK"), std::string::npos);
}

TEST_F(Bootstrapping, MpiLauncherWithoutPlugin_ExpectAnErrorWithARemedy) {
  ::setenv("PMI_RANK", "0", 1);
  ::setenv("PMI_SIZE", "2", 1);
  ::setenv("WHERRY_MPI_PLUGIN", "/nonexistent/libwherry_mpi.so", 1);
  const auto found = find_bootstrap(Deadline(1s));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.status().code(), StatusCode::kNotFound);
  for (const char* word : {"PMI_SIZE", "/nonexistent/libwherry_mpi.so", "docs/guide/route-launch.md", "wherry run"})
    EXPECT_NE(found.status().message().find(word), std::string::npos) << found.status().message();
  ::setenv("WHERRY_RANKS_PER_NODE", "two", 1);
  EXPECT_NE(find_bootstrap(Deadline(1s)).status().message().find("WHERRY_RANKS_PER_NODE"), std::string::npos);
}

}  // namespace
}  // namespace wherry::route
