// SPDX-License-Identifier: Apache-2.0
#include "kv/sim/history.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "kv/sim/workload.hpp"
#include "nlohmann/json.hpp"

namespace wherry::kv::sim {
namespace {

std::vector<nlohmann::json> lines_of(const History& history) {
  std::vector<nlohmann::json> lines;
  std::istringstream in(history.to_json_lines());
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(KvHistory, Operations_AreLinesOfJson) {
  History history;
  const auto put = history.begin(3, {.verb = Verb::kPutIf, .key = 0xff, .expected = 7, .value = bytes_of("ab")}, 100);
  const auto get = history.begin(4, {.key = 0xff}, 110);
  history.end(get, {.outcome = Outcome::kOk, .version = 8, .value = bytes_of("ab")}, 120);
  const std::vector<nlohmann::json> lines = lines_of(history);
  ASSERT_EQ(lines.size(), 2);
  EXPECT_EQ(lines[0], nlohmann::json::parse(R"({"client":3,"key":"00000000000000ff","op":"put_if","value":"6162",
    "expected":7,"call":400,"return":null,"outcome":"unknown","version":0})"));
  EXPECT_EQ(lines[1], nlohmann::json::parse(R"({"client":4,"key":"00000000000000ff","op":"get","value":"6162",
    "expected":0,"call":440,"return":480,"outcome":"ok","version":8})"));
  history.end(put, {.outcome = Outcome::kVersionMismatch, .version = 9}, 130);
  EXPECT_EQ(lines_of(history)[0]["value"], "6162");
  EXPECT_EQ(history.count(Outcome::kVersionMismatch), 1);
}

TEST(KvHistory, LongValues_DifferInLengthOrHash) {
  const std::string a(1024, 'a');
  std::string b = a;
  b.back() = 'b';
  EXPECT_LT(text_of(bytes_of(a)).size(), 64);
  EXPECT_NE(text_of(bytes_of(a)), text_of(bytes_of(b)));
  EXPECT_NE(text_of(bytes_of(a)), text_of(bytes_of(std::string_view(a).substr(1))));
  EXPECT_EQ(text_of({}), "");
}

/// Answers every request with success after some time.
struct Yes final : KvPort {
  Yes(Network& on, KvSink*& to) : network(on), sink(to) {}
  void submit(std::uint64_t ticket, const Request& request) override {
    ++outstanding;
    most = std::max(most, outstanding);
    keys.insert(request.key);
    if (request.value.size() >= 8) repeated += !values.insert(text_of(request.value)).second;
    sizes.insert(request.value.size());
    network.call_at(network.now() + 1000, [this, ticket](Cycles now) {
      --outstanding;
      sink->complete(now, ticket, {.outcome = Outcome::kOk, .version = 1});
    });
  }
  Network& network;
  KvSink*& sink;
  std::size_t outstanding = 0;
  std::size_t most = 0;
  std::size_t repeated = 0;
  std::set<std::uint64_t> keys;
  std::set<std::size_t> sizes;
  std::set<std::string> values;
};

TEST(KvWorkload, Clients_DoAsTheirOptionsSay) {
  Network network(1);
  KvSink* sink = nullptr;
  Yes yes(network, sink);
  Workload workload(network, 2, {.operations = 2000, .outstanding = 3, .think = 10});
  sink = &workload;
  workload.add_client(yes);
  workload.add_client(yes);
  workload.start();
  EXPECT_FALSE(workload.done());
  while (network.step()) {
  }
  EXPECT_TRUE(workload.done());
  EXPECT_EQ(workload.history().size(), 4000);
  EXPECT_EQ(workload.history().count(Outcome::kOk), 4000);
  EXPECT_EQ(yes.most, 6);
  EXPECT_EQ(yes.keys, (std::set<std::uint64_t>(workload.keys().begin(), workload.keys().end())));
  EXPECT_EQ(yes.keys.size(), 7);
  EXPECT_EQ(yes.repeated, 0);
  EXPECT_TRUE(yes.sizes.contains(0));
  EXPECT_EQ(*yes.sizes.rbegin(), 1024);
  std::map<std::string, int> verbs;
  for (const nlohmann::json& line : lines_of(workload.history())) ++verbs[line["op"]];
  EXPECT_NEAR(verbs["get"], 1600, 150);
  EXPECT_NEAR(verbs["remove_if"], 280, 100);
}

TEST(KvWorkload, KeysOfOneBucket_ShareItAndAreDistinct) {
  const std::vector<std::uint64_t> keys = keys_of_one_bucket(6, 12, 99);
  EXPECT_EQ(std::set<std::uint64_t>(keys.begin(), keys.end()).size(), 6);
  for (const std::uint64_t key : keys) EXPECT_EQ(bucket_of(hash_of(key), 12), bucket_of(hash_of(99), 12));
}

}  // namespace
}  // namespace wherry::kv::sim
