// SPDX-License-Identifier: Apache-2.0
// AXI4 ports of 512 bits before a memory: they turn bursts into accesses, answer them, and check the manager.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>

#include "sim/memory/axi.hpp"
#include "sim/memory/backend.hpp"
#include "sim/memory/content.hpp"
#include "sim/memory/ring.hpp"

namespace wherry::sim::memory {

/// How a port handles its bursts. The defaults are those of litedram's AXI front end (frontend/axi.py).
struct AxiPortSettings {
  std::uint32_t addresses = 1;     ///< bursts of each direction that wait, or are being cut
  std::uint32_t read_beats = 64;   ///< beats on the way to the manager, at most
  std::uint32_t write_beats = 64;  ///< beats from the manager that wait for their turn
  bool one_way = true;             ///< reads and writes share the way to the memory, burst by burst
  std::uint32_t answer = 1;        ///< cycles from the last write's data being taken to B
};

/// One port. Reads are answered in order, and so are writes, whatever their identifiers (A5.3 allows it). Addresses
/// beyond the memory are answered with DECERR. Sequence of one cycle: present(); the manager sees answer(); the
/// memory's cycle() and performed(); take().
class AxiPort {
 public:
  AxiPort(Backend& backend, Content& content, std::uint32_t number, const AxiPortSettings& settings)
      : backend_(backend), content_(content), number_(number), settings_(settings) {}

  /// Offers the memory an access, and decides the port's outputs.
  void present();
  [[nodiscard]] const AxiAnswer& answer() const noexcept { return out_; }
  /// The clock edge at the end of the cycle in which the manager drove `in`.
  void take(const AxiRequest& in);
  /// Call it when the memory has performed one of this port's accesses.
  void performed(const Done& done);

  /// The first rule that the manager broke, and where; empty if it broke none.
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }
  /// Nothing is under way.
  [[nodiscard]] bool quiet() const noexcept {
    return reads_.empty() && writes_.empty() && data_.empty() && answers_.empty() && incoming_.empty();
  }

 private:
  static constexpr Cycle kNever = ~Cycle{0};

  struct Burst {
    AxiAddress address;
    bool error = false;         ///< outside of the memory
    std::uint32_t offered = 0;  ///< beats that the memory has taken
    std::uint64_t number = 0;   ///< of a write: its answer
  };
  struct ReadBeat {
    std::uint32_t id = 0;
    bool last = false, error = false;
    Cycle ready = kNever;
    Beat data{};
  };
  struct WriteBeat {
    Beat data{};
    Strobes strobes = 0;
    Cycle usable = 0;          ///< from then on
    Cycle freed = kNever;      ///< its place in the buffer
    std::uint64_t answer = 0;  ///< of the burst that it belongs to
  };
  struct Answer {
    std::uint32_t id = 0;
    bool error = false;
    std::uint32_t beats = 0;  ///< not performed yet
    Cycle due = 0;
  };

  void check(const AxiRequest& in);
  void check_burst(std::string_view channel, const AxiAddress& burst);
  void violate(std::string text);
  [[nodiscard]] bool wants_read() const noexcept;
  [[nodiscard]] bool wants_write() const noexcept;
  /// Offers one more beat of the first burst to the memory. True: it was the burst's last beat.
  bool offer_read();
  bool offer_write();
  void offer();
  void take_data(const AxiRequest& in);

  Backend& backend_;
  Content& content_;
  std::uint32_t number_;
  AxiPortSettings settings_;

  Ring<Burst> reads_, writes_;  ///< that are being cut, or wait for it
  bool write_turn_ = true;      ///< with one_way
  // Tags of accesses count up; beside each queue is the number of its first element.
  Ring<ReadBeat> incoming_;
  std::uint64_t first_incoming_ = 0;
  Ring<WriteBeat> data_;
  std::uint64_t first_data_ = 0;
  std::uint32_t data_offered_ = 0;  ///< so many of data_, the first, the memory has taken
  Ring<Answer> answers_;
  std::uint64_t first_answer_ = 0;
  Ring<std::uint32_t> expected_;  ///< beats of bursts whose WLAST came, and whose address did not
  Ring<std::uint32_t> lengths_;   ///< the other way round
  std::uint32_t beats_ = 0;       ///< W: since the last WLAST
  AxiAnswer out_;
  AxiRequest before_;  ///< what was offered and not taken in the cycle before
  bool offered_ = false;
  std::string violation_;
};

/// Several ports before one memory.
class AxiMemory final : public AxiBus {
 public:
  /// The backend and the content must outlive it.
  AxiMemory(Backend& backend, Content& content, std::uint32_t ports, const AxiPortSettings& settings = {});

  [[nodiscard]] const AxiAnswer& answer(std::uint32_t port) const override { return ports_[port].answer(); }
  void step(std::span<const AxiRequest> in) override;
  [[nodiscard]] std::string violation() const;
  [[nodiscard]] bool quiet() const;
  [[nodiscard]] Backend& backend() noexcept { return backend_; }

 private:
  void present();

  Backend& backend_;
  std::deque<AxiPort> ports_;
  std::uint32_t first_ = 0;  ///< whose offer comes first
};

}  // namespace wherry::sim::memory
