// SPDX-License-Identifier: Apache-2.0
// What members must have alike: docs/kv.md, the cluster file.
#include <fmt/core.h>

#include "kv/keeper/keeper.hpp"

namespace wherry::kv {
namespace {

std::string text_of(const Endpoint& at) {
  if (at.port == 0) return "absent";
  return fmt::format("at {}.{}.{}.{}:{}", at.ip >> 24, at.ip >> 16 & 255, at.ip >> 8 & 255, at.ip & 255, at.port);
}

const char* policy_of(bool accept) { return accept ? "accept" : "store"; }

}  // namespace

std::string Keeper::mismatch(const Hello& hello) const {
  if (hello.cluster != options_.cluster)
    return fmt::format("this is the keeper of cluster '{}', not '{}'", options_.cluster, hello.cluster);
  if (!options_.nodes[hello.node].configured)
    return fmt::format("cluster '{}' has no node {}", options_.cluster, hello.node);
  std::string what;
  if (hello.lanes != options_.lanes) what = fmt::format("lanes = {}, the cluster's {}", hello.lanes, options_.lanes);
  if (hello.bucket_bits != options_.bucket_bits)
    what = fmt::format("bucket_bits = {}, the cluster's {}", hello.bucket_bits, options_.bucket_bits);
  if (options_.policy != AckPolicy::mixed && hello.accept != (options_.policy == AckPolicy::accept))
    what = fmt::format("policy = \"{}\", the cluster's \"{}\"", policy_of(hello.accept), policy_of(!hello.accept));
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    const Endpoint ours = options_.nodes[node].configured ? options_.nodes[node].endpoint : Endpoint{};
    const Endpoint& theirs = hello.nodes[node];
    if (ours.ip != theirs.ip || ours.port != theirs.port)
      what = fmt::format("node {} {}, the cluster's {}", node, text_of(theirs), text_of(ours));
    else if (ours.mac != theirs.mac)
      what = fmt::format("node {} with MAC {:012x}, the cluster's {:012x}", node, theirs.mac, ours.mac);
  }
  if (what.empty()) return {};
  return fmt::format("node {}'s cluster file has {}: give it the keeper's file, and start it again", hello.node, what);
}

}  // namespace wherry::kv
