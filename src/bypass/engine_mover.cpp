// SPDX-License-Identifier: Apache-2.0
#include "bypass/engine_mover.hpp"

#include <fmt/core.h>

#include <array>

namespace wherry::bypass {

dma::Ring& EngineMover::ring_of(Way way) {
  return engine_.ring(way == Way::kToHost ? dma::Direction::kToHost : dma::Direction::kToCard, 0);
}

bool EngineMover::try_post(Way way, std::uint32_t offset, std::uint32_t bytes) {
  return ring_of(way).post({.host = mirror_ + offset, .card = offset, .bytes = bytes}).ok();
}

Result<std::size_t> EngineMover::poll(Way way) {
  std::array<dma::Done, 16> done;
  std::size_t all = 0;
  for (std::size_t count = done.size(); count == done.size(); all += count) {
    count = ring_of(way).poll(done);
    for (const dma::Done& one : std::span(done).first(count))
      if (one.error != dma::Error::kNone)
        return Status(StatusCode::kUnavailable,
                      fmt::format("the card's DMA engine failed a copy: {}", dma::to_string(one.error)));
  }
  return all;
}

}  // namespace wherry::bypass
