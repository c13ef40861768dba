// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/try.hpp"
#include "probe/host/memory.hpp"
#include "probe/host/paths.hpp"
#include "probe/pattern.hpp"

namespace wherry::probe {
namespace {

/// Lines of 64 bytes in one random circle. A line's first 8 bytes are the next line's number;
/// the rest is the seed's pattern. The chains start at equal distances along the circle.
class Chase final : public Path {
 public:
  static constexpr std::size_t kLine = 64;
  static constexpr unsigned kSteps = 256;  // of each chain in one transfer
  static constexpr unsigned kMostChains = 16;

  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Status accepts(const Shape& shape) const override {
    if (shape.depth < 1 || shape.depth > kMostChains || shape.bytes < kLine * 4 * kMostChains ||
        shape.cache != CacheState::kWarm || shape.channels != 1 || shape.align != 0 || shape.flow != Flow::kC2H ||
        shape.pattern != Pattern::kRandom || shape.notice != Notice::kPolled)
      return {StatusCode::kUnsupported, fmt::format("a chase is random, C2H, of 1 to {} chains in {} bytes and more",
                                                    kMostChains, kLine * 4 * kMostChains)};
    return ok_status();
  }
  [[nodiscard]] Work work(const Shape& shape) const override {
    return {.slots = 1, .units = kSteps * shape.depth, .bytes = kLine, .footprint = shape.bytes};
  }
  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    chains_ = shape.depth;
    order_.resize(shape.bytes / kLine);
    WHERRY_ASSIGN(memory_, Mapping::make(order_.size() * kLine, Mapping::Kind::kPrivate));
    return Bound{};
  }
  void prepare(std::uint64_t seed) override {
    const auto memory = memory_.data();
    fill_pattern(memory, seed);
    std::iota(order_.begin(), order_.end(), std::uint64_t{0});
    SplitMix64 random(seed);
    for (std::size_t i = order_.size() - 1; i > 0; --i)
      std::swap(order_[i], order_[random.below(static_cast<std::uint32_t>(i + 1))]);
    for (std::size_t i = 0; i < order_.size(); ++i)
      std::memcpy(memory.data() + order_[i] * kLine, &order_[(i + 1) % order_.size()], sizeof(std::uint64_t));
    for (unsigned chain = 0; chain < chains_; ++chain) at_[chain] = order_[start(chain)];
    walked_ = 0;
  }
  [[nodiscard]] bool try_post(unsigned /*slot*/) override {
    switch (chains_) {  // the compiler keeps the places of a chain in a register only if it knows how many there are
      case 1:
        walk<1>();
        break;
      case 2:
        walk<2>();
        break;
      case 4:
        walk<4>();
        break;
      case 8:
        walk<8>();
        break;
      default:
        walk<0>();
    }
    walked_ += kSteps;
    return done_ = true;
  }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    if (!std::exchange(done_, false)) return 0U;
    done[0] = 0;
    return 1U;
  }
  [[nodiscard]] Status verify(std::uint64_t seed) override {
    for (unsigned chain = 0; chain < chains_; ++chain) {
      if (at_[chain] != order_[(start(chain) + walked_) % order_.size()])
        return {StatusCode::kInternal, fmt::format("chain {} has ended in the wrong line", chain)};
    }
    const auto memory = memory_.data();
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const std::size_t line = order_[i] * kLine;
      std::uint64_t next = 0;
      std::memcpy(&next, memory.data() + line, sizeof next);
      const auto rest = memory.subspan(line + sizeof next, kLine - sizeof next);
      if (next != order_[(i + 1) % order_.size()] || find_wrong(rest, seed, line + sizeof next))
        return {StatusCode::kInternal, fmt::format("line {} is not what it was", order_[i])};
    }
    return ok_status();
  }
  [[nodiscard]] std::span<std::byte> landing() override { return memory_.data().first(order_.size() * kLine); }
  void close() noexcept override { memory_.reset(); }

 private:
  [[nodiscard]] std::size_t start(unsigned chain) const { return order_.size() / chains_ * chain; }

  template <unsigned kChains>
  void walk() noexcept {
    const unsigned chains = kChains == 0 ? chains_ : kChains;
    std::array<std::uint64_t, kMostChains> at = at_;
    const std::byte* const lines = memory_.data().data();
    for (unsigned step = 0; step < kSteps; ++step) {
      for (unsigned chain = 0; chain < chains; ++chain) {
        std::uint64_t next = 0;
        std::memcpy(&next, lines + at[chain] * kLine, sizeof next);
        at[chain] = next;
      }
    }
    at_ = at;
  }

  PathInfo info_{.id = "cpu.chase",
                 .group = "cpu",
                 .from = "host memory",
                 .to = "a register",
                 .note = "a transfer is a load of one line; depth is the number of independent chains"};
  unsigned chains_ = 1;
  std::vector<std::uint64_t> order_;
  std::array<std::uint64_t, kMostChains> at_{};
  std::uint64_t walked_ = 0;
  Mapping memory_;
  bool done_ = false;
};

}  // namespace

std::unique_ptr<Path> make_chase() { return std::make_unique<Chase>(); }

}  // namespace wherry::probe
