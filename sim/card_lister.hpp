// SPDX-License-Identifier: Apache-2.0
// Lists the keys of a simulated card as its host does: from the table's lines in the card's memory.
#pragma once

#include "kv/snapshot/key_window.hpp"
#include "sim/core.hpp"
#include "sim/kv_card/card_memory.hpp"

namespace wherry::kv::rtl {

class CardLister final : public TableLister {
 public:
  CardLister(Core& core, CardMemory& memory) : core_(core), memory_(memory) {}
  void settle() override;
  void list(std::uint32_t first, std::uint32_t buckets, std::vector<std::uint64_t>& keys) override;

 private:
  Core& core_;
  CardMemory& memory_;
};

}  // namespace wherry::kv::rtl
