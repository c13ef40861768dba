// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "probe/path.hpp"

namespace wherry::probe {

/// A path that cannot run here. PathInfo::absent gives the reason and the remedy.
class AbsentPath final : public Path {
 public:
  explicit AbsentPath(PathInfo info) : info_(std::move(info)) {}
  [[nodiscard]] const PathInfo& info() const override { return info_; }
  [[nodiscard]] Status accepts(const Shape&) const override { return why(); }
  [[nodiscard]] Result<Bound> open(const Shape&) override { return why(); }
  void prepare(std::uint64_t) override {}
  [[nodiscard]] bool try_post(unsigned) override { return false; }
  [[nodiscard]] Result<unsigned> poll(std::span<unsigned>) override { return why(); }
  [[nodiscard]] Status verify(std::uint64_t) override { return why(); }
  void close() noexcept override {}

 private:
  [[nodiscard]] Status why() const { return {StatusCode::kUnavailable, info_.id + " is absent: " + info_.absent}; }
  PathInfo info_;
};

inline std::unique_ptr<Path> absent(PathInfo info, std::string why) {
  info.absent = std::move(why);
  return std::make_unique<AbsentPath>(std::move(info));
}

}  // namespace wherry::probe
