// SPDX-License-Identifier: Apache-2.0
#include "kv/control/terms.hpp"

#include <fmt/core.h>

#include "kv/net/address.hpp"

namespace wherry::kv {
namespace {

std::string text_of(const Endpoint& at) { return at.port == 0 ? "absent" : "at " + to_string(at); }

const char* policy_of(bool accept) { return accept ? "accept" : "store"; }

}  // namespace

std::string mismatch(const ClusterTerms& ours, const Hello& theirs, const std::string& judge) {
  if (theirs.cluster != ours.cluster)
    return fmt::format("this is {} of cluster '{}', not '{}'", judge, ours.cluster, theirs.cluster);
  if (theirs.node >= kMaxNodes || ours.nodes[theirs.node].port == 0)
    return fmt::format("cluster '{}' has no node {}", ours.cluster, theirs.node);
  std::string what;
  if (theirs.lanes != ours.lanes) what = fmt::format("lanes = {}, the cluster's {}", theirs.lanes, ours.lanes);
  if (theirs.bucket_bits != ours.bucket_bits)
    what = fmt::format("bucket_bits = {}, the cluster's {}", theirs.bucket_bits, ours.bucket_bits);
  if (ours.policy != AckPolicy::mixed && theirs.accept != (ours.policy == AckPolicy::accept))
    what = fmt::format("policy = \"{}\", the cluster's \"{}\"", policy_of(theirs.accept), policy_of(!theirs.accept));
  for (std::uint32_t node = 0; node < kMaxNodes; ++node) {
    const Endpoint& our = ours.nodes[node];
    const Endpoint& their = theirs.nodes[node];
    if (our.ip != their.ip || our.port != their.port)
      what = fmt::format("node {} {}, the cluster's {}", node, text_of(their), text_of(our));
    else if (our.mac != their.mac)
      what = fmt::format("node {} with MAC {:012x}, the cluster's {:012x}", node, their.mac, our.mac);
  }
  if (what.empty()) return {};
  return fmt::format("node {}'s cluster file has {}: give it {}'s file, and start it again", theirs.node, what, judge);
}

}  // namespace wherry::kv
