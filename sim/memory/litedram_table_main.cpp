// SPDX-License-Identifier: Apache-2.0
// Prints the comparison table of litedram's controller, Verilated. tools/litedram.py generates and builds it. It is not
// part of the project's build.
#include <verilated.h>

#include <array>
#include <cstring>
#include <memory>

#include "Vlitedram.h"
#include "sim/memory/table_json.hpp"

namespace {

using namespace wherry::sim::memory;

/// The two AXI4 ports s0_axi_ and s1_axi_ of the Verilated design.
class Litedram final : public AxiBus {
 public:
  Litedram() {
    top_->sys_rst = 1;
    for (int i = 0; i < 20; ++i) edge();
    top_->sys_rst = 0;
    look();
  }
  [[nodiscard]] const AxiAnswer& answer(std::uint32_t port) const override { return answers_[port]; }
  void step(std::span<const AxiRequest> in) override {
#define WHERRY_DRIVE(N)                                                                           \
  top_->s##N##_axi_arvalid = in[N].ar_valid;                                                      \
  top_->s##N##_axi_araddr = static_cast<IData>(in[N].ar.address);                                 \
  top_->s##N##_axi_arlen = static_cast<CData>(in[N].ar.length);                                   \
  top_->s##N##_axi_arsize = static_cast<CData>(in[N].ar.size);                                    \
  top_->s##N##_axi_arburst = 1;                                                                   \
  top_->s##N##_axi_awvalid = in[N].aw_valid;                                                      \
  top_->s##N##_axi_awaddr = static_cast<IData>(in[N].aw.address);                                 \
  top_->s##N##_axi_awlen = static_cast<CData>(in[N].aw.length);                                   \
  top_->s##N##_axi_awsize = static_cast<CData>(in[N].aw.size);                                    \
  top_->s##N##_axi_awburst = 1;                                                                   \
  top_->s##N##_axi_wvalid = in[N].w_valid;                                                        \
  top_->s##N##_axi_wlast = in[N].w_last;                                                          \
  top_->s##N##_axi_wstrb = in[N].w_strobes;                                                       \
  if (in[N].w_valid) std::memcpy(top_->s##N##_axi_wdata.data(), in[N].w_data.data(), kBeatBytes); \
  top_->s##N##_axi_rready = in[N].r_ready;                                                        \
  top_->s##N##_axi_bready = in[N].b_ready
    WHERRY_DRIVE(0);
    WHERRY_DRIVE(1);
    edge();
    look();
  }

 private:
  void edge() {
    top_->sys_clk = 0;
    top_->eval();
    top_->sys_clk = 1;
    top_->eval();
  }
  void look() {
#define WHERRY_LOOK(N)                             \
  answers_[N].ar_ready = top_->s##N##_axi_arready; \
  answers_[N].aw_ready = top_->s##N##_axi_awready; \
  answers_[N].w_ready = top_->s##N##_axi_wready;   \
  answers_[N].r_valid = top_->s##N##_axi_rvalid;   \
  answers_[N].r_last = top_->s##N##_axi_rlast;     \
  answers_[N].b_valid = top_->s##N##_axi_bvalid
    WHERRY_LOOK(0);
    WHERRY_LOOK(1);
  }

  std::unique_ptr<Vlitedram> top_ = std::make_unique<Vlitedram>();
  std::array<AxiAnswer, 2> answers_;
};

}  // namespace

int main() {
  Litedram litedram;
  return print_table(litedram, 3'333);
}
