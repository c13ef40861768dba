// SPDX-License-Identifier: Apache-2.0
// Chooses which of too many strangers' connections to close: one of the source with the most of them. One thread.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <unordered_map>

namespace wherry {

/// Identifies the peer of a connected socket: an IPv4 address, an IPv6 /64 network, or a user of this machine. Empty if
/// the kernel does not report the peer.
std::string source_of(int socket);

class Crowd {
 public:
  /// Each connection holds one. Its use count is the number of connections from that source.
  using Source = std::shared_ptr<const std::string>;

  Source enter(std::string source) {
    if (known_.size() > kForgetAt) std::erase_if(known_, [](const auto& one) { return one.second.expired(); });
    std::weak_ptr<const std::string>& known = known_[source];
    Source held = known.lock();
    if (held == nullptr) known = held = std::make_shared<const std::string>(std::move(source));
    return held;
  }
  /// Returns a random element of [first, last) from the source with the most connections. The age is ignored: it does
  /// not distinguish honest clients from others. The range must not be empty.
  template <typename Iterator, typename SourceOf>
  Iterator makes_way(Iterator first, Iterator last, SourceOf source) {
    Iterator chosen = first;
    long most = 0;
    for (std::uint64_t equal = 0; first != last; ++first) {
      const long count = source(*first).use_count();
      if (count < most) continue;
      if (count > most) equal = 0;
      most = count;
      if (random_() % ++equal == 0) chosen = first;
    }
    return chosen;
  }

 private:
  static constexpr std::size_t kForgetAt = 4096;
  std::unordered_map<std::string, std::weak_ptr<const std::string>> known_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace wherry
