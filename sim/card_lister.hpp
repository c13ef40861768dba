// SPDX-License-Identifier: Apache-2.0
// How the host of a simulated card lists its keys: it reads the table's lines in the card's memory.
#pragma once

#include "kv/snapshot/key_window.hpp"
#include "sim/core.hpp"

namespace wherry::kv::rtl {

class CardLister final : public TableLister {
 public:
  explicit CardLister(Core& core) : core_(core) {}
  void settle() override;
  void list(std::uint32_t first, std::uint32_t buckets, std::vector<std::uint64_t>& keys) override;

 private:
  Core& core_;
};

}  // namespace wherry::kv::rtl
