// SPDX-License-Identifier: Apache-2.0
// How the host of a simulated card lists its keys: it reads the table's lines in the card's memory.
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
