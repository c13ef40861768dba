// SPDX-License-Identifier: Apache-2.0
// A network in virtual time, for tests of whole clusters. It delays, loses, repeats and reorders frames, and
// stops and restarts processes, all from one seed. The same calls with the same seed give the same events. One
// thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kv/message.hpp"
#include "kv/sim/random.hpp"

namespace wherry::kv::sim {

inline constexpr std::size_t kMaxFrame = 1152;  ///< longer ones are not carried

/// The content of a packet: the payload of a UDP datagram (kv header and value), or a whole Ethernet frame.
enum class Form : std::uint8_t { kDatagram, kFrame };

struct Packet {
  Endpoint from;
  Endpoint to;
  Form form = Form::kDatagram;
  ByteView bytes;  ///< borrowed for the duration of the call
};

/// A process on the network. Its functions may send and set wakes.
class Receiver {
 public:
  virtual void receive(Cycles now, const Packet& packet) = 0;
  virtual void wake(Cycles now, std::uint64_t tag) = 0;

 protected:
  Receiver() = default;
  Receiver(const Receiver&) = default;
  Receiver& operator=(const Receiver&) = default;
  ~Receiver() = default;
};

/// One direction between two ports. Frames keep their order, except those chosen to be late.
struct Link {
  Cycles latency = 250;         ///< at least; 1 us
  Cycles jitter = 250;          ///< more, evenly distributed
  std::uint32_t loss = 0;       ///< chance, in parts per million
  std::uint32_t duplicate = 0;  ///< chance of a second copy, with a delay of its own, out of order
  std::uint32_t late = 0;       ///< chance of being late, out of order
  Cycles lateness = 25000;      ///< up to so much; 100 us
};

/// What happens to a packet.
enum class Fate : std::uint8_t {
  kSent,        ///< by a port, whatever comes then
  kDelivered,   ///< to a process
  kLost,        ///< by chance
  kCut,         ///< between two sides of a partition
  kUnroutable,  ///< nobody has that address, or the frame is too long
  kDead,        ///< its receiver is
};
inline constexpr std::size_t kFates = 6;

/// Sees every packet, for traces.
class Tap {
 public:
  virtual void see(Cycles now, Fate fate, const Packet& packet) = 0;

 protected:
  Tap() = default;
  Tap(const Tap&) = default;
  Tap& operator=(const Tap&) = default;
  ~Tap() = default;
};

using Port = std::uint16_t;

class Network {
 public:
  explicit Network(std::uint64_t seed) : random_(seed) {}

  /// Attaches a process. Its (ip, port) must be unique, and so must its mac unless that is 0.
  Port attach(const Endpoint& at, Receiver& receiver);
  [[nodiscard]] const Endpoint& endpoint(Port port) const { return ports_[port].at; }

  /// Sets all links, present and future; set_link() sets one direction of one link.
  void set_links(const Link& link);
  void set_link(Port from, Port to, const Link& link) { links_[from][to].options = link; }

  /// What happens to a packet in addition to its link: kLose, or a delay (0: none) that may change the order.
  using Interference = std::function<Cycles(Port from, Port to, const Packet& packet)>;
  static constexpr Cycles kLose = ~Cycles{0};
  void interfere(Interference interference) { interference_ = std::move(interference); }

  /// Sends a datagram's payload to the process with that ip and port, or a whole frame to the process with the frame's
  /// destination MAC address. The bytes are copied.
  void send(Port from, const Endpoint& to, ByteView datagram);
  void send_frame(Port from, ByteView frame);
  /// Wakes the process at that time (now, if it is in the past), unless the process is killed before.
  void wake_at(Cycles when, Port port, std::uint64_t tag) { push(when, What::kWake, port, tag); }
  /// Calls a function at a time: for schedules of faults, and for parts that are not processes.
  void call_at(Cycles when, std::function<void(Cycles now)> function);

  /// Separates these ports from all others. Packets that were sent before still arrive. Each call makes a new
  /// partition.
  void split(const std::vector<Port>& side);
  void heal() { split({}); }
  /// Stops the process: packets and wakes wait for resume().
  void pause(Port port) { ports_[port].paused = true; }
  void resume(Port port);
  /// Forgets the process's wakes, and drops packets for it until revive().
  void kill(Port port);
  void revive(Port port, Receiver& receiver);

  void set_tap(Tap* tap) { tap_ = tap; }

  [[nodiscard]] Cycles now() const noexcept { return now_; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t count(Fate fate) const { return counts_[static_cast<std::size_t>(fate)]; }
  [[nodiscard]] Random& random() noexcept { return random_; }

  /// Runs the next event. False: there is none.
  bool step();
  /// Runs all events up to a time, which then is the present time.
  void run_until(Cycles when);

 private:
  enum class What : std::uint8_t { kPacket, kWake, kCall };
  struct Event {
    Cycles at;
    std::uint64_t sequence;  ///< events of one time happen in the order of their making
    std::uint64_t tag;       ///< of a wake; else the index of the packet or the call
    std::uint32_t generation;
    Port port;
    What what;
    /// The order for a heap with the earliest event on top.
    friend bool operator<(const Event& a, const Event& b) noexcept {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };
  struct Attached {
    Endpoint at;
    Receiver* receiver;  ///< none: killed
    std::uint32_t generation = 0;
    bool side = false;
    bool paused = false;
    std::vector<Event> held;  ///< while paused
  };
  struct State {
    Link options;
    Cycles last = 0;  ///< when the last one that keeps its order arrives
  };
  struct Carried {
    Endpoint from;
    Endpoint to;
    Form form;
    std::uint16_t length;
    std::array<std::byte, kMaxFrame> bytes;
  };

  void transmit(Port from, Port to, const Packet& packet);
  void deliver_at(Cycles when, Port to, const Packet& packet);
  void push(Cycles when, What what, Port port, std::uint64_t tag);
  void happen(const Event& event);
  void note(Fate fate, const Packet& packet);
  Carried& carried(std::uint64_t index) { return (*carried_[index / kChunk])[index % kChunk]; }

  static constexpr std::size_t kChunk = 64;
  Random random_;
  Cycles now_ = 0;
  std::uint64_t sequence_ = 0;
  std::uint64_t events_ = 0;
  std::array<std::uint64_t, kFates> counts_{};
  Tap* tap_ = nullptr;
  Interference interference_;
  Link default_link_;
  std::vector<Attached> ports_;
  std::vector<std::vector<State>> links_;  ///< from, to
  std::unordered_map<std::uint64_t, Port> by_address_;
  std::unordered_map<std::uint64_t, Port> by_mac_;
  std::vector<Event> heap_;
  std::vector<std::unique_ptr<std::array<Carried, kChunk>>> carried_;
  std::vector<std::uint64_t> free_carried_;
  std::vector<std::function<void(Cycles)>> calls_;
  std::vector<std::uint64_t> free_calls_;
};

}  // namespace wherry::kv::sim
