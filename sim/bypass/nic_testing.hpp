// SPDX-License-Identifier: Apache-2.0
// A NIC for tests of cards: it fetches descriptors, moves payload and writes back. A seed chooses its habits. It knows
// the descriptor formats of all personalities (bypass/descriptor.hpp). Of the card it sees only descriptors and tails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "bypass/descriptor.hpp"
#include "sim/bypass/card.hpp"

namespace wherry::sim {

using Bytes = std::vector<std::byte>;

struct NicHabits {
  bool words = false;         ///< accesses of 4 bytes, at the end of 2 and 1; a status is written last: as QEMU's NICs
  std::uint32_t fetch = 8;    ///< descriptors of one read
  std::uint32_t piece = 256;  ///< bytes of a write and a read of payload; a multiple of 4
  std::uint32_t line = 1;     ///< receive descriptors that are written back together
  bool shuffle = false;       ///< the reads of a buffer come in any order; with a piece that is a multiple of 64
};

class TestingNic {
 public:
  struct Place {
    std::uint64_t card_bar = 0, nic_bar = 0;
    std::uint32_t rx_entries = 0, tx_entries = 0;
  };
  /// `card` and `nic` must outlive it.
  TestingNic(DmaTarget& card, const bypass::Personality& nic, const Place& place, const NicHabits& habits,
             std::uint64_t seed);

  /// Lets the card's time pass, and takes its tails.
  void turn(std::uint32_t ticks);

  [[nodiscard]] bool can_receive(std::size_t bytes);
  /// From the wire. Precondition: can_receive(). `bad`: with an error for which a driver drops the frame.
  void receive(const Bytes& frame, bool bad = false);
  /// Writes back finished descriptors that do not fill a line yet.
  void write_back();
  /// Writes back the descriptor after the next one as if it were done: an error. False: there is none.
  bool write_back_out_of_turn();

  /// The next frame to the wire, if the card has announced all of it.
  std::optional<Bytes> transmit();

  /// The first error of the card that the NIC saw; empty if there was none.
  [[nodiscard]] const std::string& complaint() const noexcept { return complaint_; }
  [[nodiscard]] std::uint64_t tails() const noexcept { return tails_; }

 private:
  struct Ring {
    std::uint32_t base = 0, entries = 0, bytes = 0;
    std::uint32_t tail = 0, fetched = 0, done = 0;
    std::deque<bypass::Descriptor> cache;  ///< from `done` on
    [[nodiscard]] std::uint32_t known() const noexcept { return (tail + entries - fetched) % entries; }
  };
  struct Done {
    std::uint32_t index = 0;
    bypass::Descriptor descriptor;
  };
  void told(Ring& ring, std::uint32_t value);
  bool fetch(Ring& ring);
  void write(std::uint32_t offset, const Bytes& data, std::uint32_t piece);
  void read(std::uint32_t offset, std::span<std::byte> data, std::uint32_t piece);
  void write_descriptors(std::uint32_t index, const std::vector<bypass::Descriptor>& all);
  [[nodiscard]] bypass::Descriptor made(const bypass::RxDone& done);
  [[nodiscard]] std::uint32_t in_window(std::uint64_t address, std::uint32_t bytes);
  void complain(const std::string& what);

  DmaTarget& card_;
  const bypass::Personality& nic_;
  Place place_;
  NicHabits habits_;
  SplitMix64 random_;
  Ring rx_, tx_;
  std::deque<Done> unwritten_;
  std::uint64_t tails_ = 0;
  std::string complaint_;
};

}  // namespace wherry::sim
