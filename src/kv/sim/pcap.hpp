// SPDX-License-Identifier: Apache-2.0
// Writes the simulated network's packets to a pcap file, for Wireshark.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "kv/sim/network.hpp"
#include "wherry/status.hpp"

namespace wherry::kv::sim {

class Pcap final : public Tap {
 public:
  /// Writes each packet when it has this fate: kDelivered shows what processes received, kLost what they missed.
  static Result<std::unique_ptr<Pcap>> create(const std::string& path, Fate shown = Fate::kDelivered);

  void see(Cycles now, Fate fate, const Packet& packet) override;

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  Pcap(std::FILE* file, Fate shown) noexcept : file_(file), shown_(shown) {}
  std::unique_ptr<std::FILE, Close> file_;
  Fate shown_;
};

}  // namespace wherry::kv::sim
