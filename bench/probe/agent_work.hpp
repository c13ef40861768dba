// SPDX-License-Identifier: Apache-2.0
// An agent's work without a job: the router of a routing thread (route/router.hpp) moves messages from input rings to
// output rings. This process plays the previous and next hops, too. Messages carry numbers, whose sum and count must be
// the same before and after routing.
//
// fill() and drain() do the hops' work, and route() the agent's. They may run on different cores, one after another.
// agent_kernel.cpp has only route(), so that it can be compiled to report its accesses (traced.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "route/router.hpp"

namespace wherry::bench {

struct AgentShape {
  std::uint32_t inputs = 4, lanes = 4;
  route::RingShape ring{.buffers = 8, .buffer_bytes = 32 << 10};  ///< of each
  std::uint32_t payload = 8;                                      ///< bytes of a message; a multiple of 8, not 0

  /// Of all buffers.
  [[nodiscard]] std::size_t buffer_bytes() const noexcept {
    return std::size_t{inputs + lanes} * ring.buffers * ring.buffer_bytes;
  }
};

class AgentWork {
 public:
  /// Allocates and touches all buffers.
  AgentWork(AgentShape shape, std::uint64_t seed);

  /// The content of one filled input buffer: `bytes` bytes at `at`.
  struct Filled {
    const std::byte* at = nullptr;
    std::size_t bytes = 0;
  };
  /// Previous hops fill `buffers` buffers of every input, at most half a ring. The bytes for each lane are random, so a
  /// lane's open buffer is usually part full. Calls `filled` for each buffer.
  template <typename Each>
  void fill(std::uint32_t buffers, Each filled) {
    for (std::uint32_t i = 0; i < buffers; ++i)
      for (std::uint32_t input = 0; input < shape_.inputs; ++input) filled(fill_one(input));
  }
  /// The agent forwards all messages that wait. Returns their bytes, headers included.
  std::size_t route();
  /// Next hops take all forwarded messages.
  void drain();
  /// Whether every message of fill() has come out once.
  [[nodiscard]] bool complete() const noexcept { return in_ == out_; }
  [[nodiscard]] const AgentShape& shape() const noexcept { return shape_; }

 private:
  struct Tally {
    std::uint64_t messages = 0, sum = 0;
    friend bool operator==(const Tally&, const Tally&) noexcept = default;
  };
  Filled fill_one(std::uint32_t input);

  AgentShape shape_;
  std::unique_ptr<std::byte[], void (*)(void*)> memory_;
  route::Router router_;
  std::vector<route::RingWriter> previous_;
  std::vector<route::RingReader> next_;
  route::Doorbells doorbells_;
  std::uint64_t random_;
  Tally in_, out_;
};

}  // namespace wherry::bench
