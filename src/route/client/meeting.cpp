// SPDX-License-Identifier: Apache-2.0
#include "route/client/meeting.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <map>
#include <random>

#include "base/cpu.hpp"
#include "base/try.hpp"
#include "route/client/environment.hpp"

namespace wherry::route {
namespace {

constexpr const char* kPerNodeVariable = "WHERRY_RANKS_PER_NODE";

std::uint64_t random_word() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

Result<std::uint32_t> ranks_per_node() {
  const auto text = variable(kPerNodeVariable);
  if (!text) return 0;
  return number_of(kPerNodeVariable, *text, 1, kMaxRanks);
}

Result<Meeting> meet(Bootstrap& bootstrap, std::uint32_t ranks_per_node, const Deadline& deadline) {
  Writer mine;
  mine.put(ranks_per_node);
  mine.put(random_word());
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  mine.put_string(host_identity() + '/' + name.data());
  WHERRY_ASSIGN(auto all, bootstrap.exchange(mine.bytes(), deadline));
  Meeting meeting;
  std::vector<std::string> host_of_rank;
  for (const Bytes& bytes : all) {
    Reader in(bytes);
    const auto theirs = in.get<std::uint32_t>();
    const auto job = in.get<std::uint64_t>();
    if (host_of_rank.empty()) meeting.job = job;
    host_of_rank.push_back(in.get_string());
    if (!in.at_end()) return Status(StatusCode::kProtocol, "a rank runs another version of Wherry");
    if (theirs != ranks_per_node) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{} is {} on rank {}, and {} on rank {}: give all the same", kPerNodeVariable,
                                ranks_per_node, bootstrap.rank(), theirs, host_of_rank.size() - 1));
    }
  }
  meeting.node = number_nodes(host_of_rank, ranks_per_node)[bootstrap.rank()];
  return meeting;
}

std::vector<std::uint32_t> number_nodes(const std::vector<std::string>& host_of_rank, std::uint32_t ranks_per_node) {
  std::map<std::string, std::uint32_t> on_host;
  std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> node_of_rank;
  for (const std::string& host : host_of_rank) {
    const std::uint32_t index = on_host[host]++;
    const std::uint32_t part = ranks_per_node == 0 ? 0 : index / ranks_per_node;
    const auto next = static_cast<std::uint32_t>(numbers.size());
    node_of_rank.push_back(numbers.try_emplace({host, part}, next).first->second);
  }
  return node_of_rank;
}

}  // namespace wherry::route
