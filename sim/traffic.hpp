// SPDX-License-Identifier: Apache-2.0
// A node's possible input: requests on few keys of few, overfull buckets, leaders and followers that follow the
// protocol, and frames that are spoilt in every way that we know.
#pragma once

#include <array>
#include <map>
#include <string_view>

#include "kv/sim/random.hpp"
#include "sim/differential.hpp"

namespace wherry::kv::rtl {

/// The kinds of damage that spoil() does to a frame.
enum class Spoil : std::uint8_t {
  kFlip,  ///< one bit, or some
  kCut,   ///< shorter than it says
  kPad,   ///< longer than it says: that is allowed
  kIpChecksum,
  kUdpChecksum,
  kFragment,  ///< more-fragments or an offset, and a right checksum
  kVlan,      ///< tagged
  kIpOptions,
  kIpLength,  ///< and a right checksum
  kUdpLength,
  kOtherPort,
  kOtherAddress,  ///< IPv4
  kOtherSource,   ///< likewise
  kOtherMac,
  kOtherProtocol,
  kTooLong,      ///< a value over 1024 bytes
  kField,        ///< a field of a client's request, and a right checksum
  kRandom,       ///< nothing else
  kRandomForUs,  ///< behind our addresses and port
};
inline constexpr std::uint32_t kShortest = 60;  ///< a MAC fills frames up to that
inline constexpr auto kSpoils = static_cast<std::uint32_t>(Spoil::kRandomForUs) + 1;
[[nodiscard]] std::string_view name_of(Spoil spoil);

class Traffic {
 public:
  Traffic(Pair& pair, std::uint64_t seed, std::uint32_t nodes);

  /// Runs a round of one to eight frames.
  void round();
  /// Ends everything in flight, and reads all keys.
  void read_back();
  /// Sends a frame as it came, and as a client's datagram to this node.
  void replay(const Frame& corpus);
  /// For a corpus: an example of each kind.
  [[nodiscard]] Frame example(Spoil spoil);

 private:
  static constexpr std::uint16_t kClientLanes = 24;  ///< 0 to 23; the other leaders' writes have those above
  static constexpr std::uint32_t kOtherLanes = 64;   ///< for each

  struct Held {
    std::uint64_t key = 0;
    std::uint32_t version = 0;
    bool present = false;
  };
  /// Another leader: its buckets, and the one write that each of them may have in flight.
  struct Leader {
    std::map<std::uint32_t, std::array<Held, kWays>> buckets;
    std::map<std::uint64_t, std::uint32_t> where;  ///< keys: the bucket in which each is
    std::map<std::uint32_t, Kv> pending;           ///< by bucket; `replicate` as it was sent
    std::map<std::uint32_t, Frame> values;
    std::array<std::uint32_t, kOtherLanes> numbers{};
    std::uint64_t busy = 0;  ///< places
  };

  [[nodiscard]] Frame frame_of(const Endpoint& from, const Kv& header, ByteView value, bool summed);
  [[nodiscard]] Frame value();
  [[nodiscard]] std::uint64_t key() { return keys_[random_.below(static_cast<std::uint32_t>(keys_.size()))]; }
  [[nodiscard]] Endpoint client() {
    return {.mac = 0x020000000064U, .ip = 0x0a000064U, .port = static_cast<std::uint16_t>(40000 + random_.below(4))};
  }
  [[nodiscard]] Frame request();
  [[nodiscard]] Frame from_leader();
  [[nodiscard]] Frame from_follower();
  [[nodiscard]] Frame any_frame();
  [[nodiscard]] Frame commit_of(std::uint32_t leader, std::uint32_t bucket);
  /// The bucket of a key: where it is, or where a leader puts it. A leader chooses by chance among those with room.
  [[nodiscard]] std::uint32_t bucket_for(const Leader& leader, std::uint64_t key);
  [[nodiscard]] Frame new_write(std::uint32_t leader);
  void spoil(Frame& frame, Spoil how, bool of_client);
  void hear(const std::vector<Spoken>& sent);
  void put(const Frame& frame);
  void end_round() { hear(pair_.round()); }

  Pair& pair_;
  sim::Random random_;
  std::uint32_t nodes_;
  std::vector<std::uint64_t> keys_;
  std::array<std::uint32_t, kClientLanes> numbers_{};
  std::array<Frame, kClientLanes> last_;
  std::map<std::uint64_t, std::uint32_t> versions_;  ///< as last heard
  std::vector<std::pair<Endpoint, Kv>> owed_;        ///< acknowledgements of the writes that this node leads
  std::vector<Kv> answered_;
  std::array<Leader, kMaxNodes> leaders_;
  std::vector<Frame> lost_;  ///< commits, which come at the end
};

}  // namespace wherry::kv::rtl
