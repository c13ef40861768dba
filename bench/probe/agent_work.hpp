// SPDX-License-Identifier: Apache-2.0
// An agent's work without a job around it: the router of a routing thread (route/router.hpp) between rings that
// previous hops have filled and rings that next hops empty, all in this process. Messages carry numbers. Their sum and
// count at both ends must be equal.
//
// fill() and drain() are the hops' parts, and route() is the agent's. They may run on different cores, one after
// another. route() alone is in agent_kernel.cpp, so that it can be compiled to report its accesses (traced.hpp).
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

  /// The content of one buffer of an input: `bytes` at `at`.
  struct Filled {
    const std::byte* at = nullptr;
    std::size_t bytes = 0;
  };
  /// Previous hops fill `buffers` buffers of every input, at most half a ring: how many bytes go to a lane is random,
  /// and its open buffer is not empty. `filled`: called for each buffer.
  template <typename Each>
  void fill(std::uint32_t buffers, Each filled) {
    for (std::uint32_t i = 0; i < buffers; ++i)
      for (std::uint32_t input = 0; input < shape_.inputs; ++input) filled(fill_one(input));
  }
  /// The agent forwards all that there is. Bytes, headers included.
  std::size_t route();
  /// Next hops take all that there is.
  void drain();
  /// Whether all that was filled has come out, each message once.
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
