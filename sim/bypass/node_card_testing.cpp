// SPDX-License-Identifier: Apache-2.0
#include "sim/bypass/node_card_testing.hpp"

#include <Vbypass_node_dma.h>
#include <fmt/core.h>
#include <verilated.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

namespace wherry::sim {
namespace {

constexpr std::uint64_t kResetCycles = 8;
/// More cycles than any access takes. After a reset, the register files are filled in some 520.
constexpr std::uint64_t kLongestAccess = 100'000;
/// A round trip to the host's memory takes 800 ns, as in docs/design/dma.md.
constexpr std::uint64_t kRoundTrip = 200;
constexpr std::uint64_t kPosting = 100;  ///< cycles until a write is in memory
constexpr std::uint8_t kDecodeError = 3;
constexpr std::uint8_t kBoundaryBits = 12;  ///< no burst crosses 4 KiB (AXI4, A3.4.1)

/// The pins of the bridge's master port, by the names that RtlWindow has.
struct BarPins {
  explicit BarPins(Vbypass_node_dma& n)
      : s_axi_awvalid(n.s_pcie_awvalid),
        s_axi_awready(n.s_pcie_awready),
        s_axi_awid(n.s_pcie_awid),
        s_axi_awlen(n.s_pcie_awlen),
        s_axi_awsize(n.s_pcie_awsize),
        s_axi_awburst(n.s_pcie_awburst),
        s_axi_wvalid(n.s_pcie_wvalid),
        s_axi_wready(n.s_pcie_wready),
        s_axi_wlast(n.s_pcie_wlast),
        s_axi_bvalid(n.s_pcie_bvalid),
        s_axi_bready(n.s_pcie_bready),
        s_axi_bid(n.s_pcie_bid),
        s_axi_bresp(n.s_pcie_bresp),
        s_axi_arvalid(n.s_pcie_arvalid),
        s_axi_arready(n.s_pcie_arready),
        s_axi_arid(n.s_pcie_arid),
        s_axi_arlen(n.s_pcie_arlen),
        s_axi_arsize(n.s_pcie_arsize),
        s_axi_arburst(n.s_pcie_arburst),
        s_axi_rvalid(n.s_pcie_rvalid),
        s_axi_rready(n.s_pcie_rready),
        s_axi_rid(n.s_pcie_rid),
        s_axi_rresp(n.s_pcie_rresp),
        s_axi_rlast(n.s_pcie_rlast),
        s_axi_awaddr(n.s_pcie_awaddr),
        s_axi_araddr(n.s_pcie_araddr),
        s_axi_wstrb(n.s_pcie_wstrb),
        s_axi_wdata(n.s_pcie_wdata),
        s_axi_rdata(n.s_pcie_rdata) {}
  CData &s_axi_awvalid, &s_axi_awready, &s_axi_awid, &s_axi_awlen, &s_axi_awsize, &s_axi_awburst, &s_axi_wvalid,
      &s_axi_wready, &s_axi_wlast, &s_axi_bvalid, &s_axi_bready, &s_axi_bid, &s_axi_bresp, &s_axi_arvalid,
      &s_axi_arready, &s_axi_arid, &s_axi_arlen, &s_axi_arsize, &s_axi_arburst, &s_axi_rvalid, &s_axi_rready,
      &s_axi_rid, &s_axi_rresp, &s_axi_rlast;
  QData &s_axi_awaddr, &s_axi_araddr, &s_axi_wstrb;
  VlWide<16>&s_axi_wdata, &s_axi_rdata;
};

}  // namespace

/// The bridge's slave port: the host's memory, in order, with a delay.
class NodeCard::HostPort {
 public:
  explicit HostPort(HostMemory memory) : memory_(std::move(memory)) {}

  void drive(Vbypass_node_dma& c, Pauses& pauses, std::uint64_t now) {
    c.m_pcie_arready = pauses() ? 0 : 1;
    c.m_pcie_awready = pauses() ? 0 : 1;
    c.m_pcie_wready = pauses() ? 0 : 1;
    c.m_pcie_rvalid = c.m_pcie_bvalid = 0;
    r_offered_ = !reads_.empty() && reads_.front().due <= now && (r_offered_ || !pauses());
    if (r_offered_) {
      const Burst& read = reads_.front();
      std::array<std::byte, kLineBytes> line{};
      line.fill(std::byte{0xA5});  // what was not asked for
      const std::uint64_t base = read.address / kLineBytes * kLineBytes + std::uint64_t{read.beat} * kLineBytes;
      const std::uint64_t from = std::max(base, read.address);
      const bool found = memory_.read(from, std::span(line).subspan(from - base));
      std::memcpy(c.m_pcie_rdata.m_storage, line.data(), line.size());
      c.m_pcie_rvalid = 1;
      c.m_pcie_rid = read.id;
      c.m_pcie_rresp = found ? 0 : kDecodeError;
      c.m_pcie_rlast = read.beat + 1 == read.beats ? 1 : 0;
    }
    b_offered_ = !answers_.empty() && answers_.front().due <= now && (b_offered_ || !pauses());
    if (b_offered_) {
      c.m_pcie_bvalid = 1;
      c.m_pcie_bid = answers_.front().id;
      c.m_pcie_bresp = answers_.front().found ? 0 : kDecodeError;
    }
  }

  /// Describes the violated rule. Empty: none.
  [[nodiscard]] std::string sample(const Vbypass_node_dma& c, std::uint64_t now) {
    if (c.m_pcie_arvalid != 0 && c.m_pcie_arready != 0) {
      if (std::string broken = check("AR", c.m_pcie_araddr, c.m_pcie_arlen, c.m_pcie_arsize); !broken.empty())
        return broken;
      reads_.push_back({.address = c.m_pcie_araddr,
                        .beats = c.m_pcie_arlen + 1U,
                        .beat = 0,
                        .id = c.m_pcie_arid,
                        .due = now + kRoundTrip});
    }
    if (c.m_pcie_rvalid != 0 && c.m_pcie_rready != 0) {
      r_offered_ = false;
      if (++reads_.front().beat == reads_.front().beats) reads_.pop_front();
    }
    if (c.m_pcie_awvalid != 0 && c.m_pcie_awready != 0) {
      if (std::string broken = check("AW", c.m_pcie_awaddr, c.m_pcie_awlen, c.m_pcie_awsize); !broken.empty())
        return broken;
      writes_.push_back(
          {.address = c.m_pcie_awaddr, .beats = c.m_pcie_awlen + 1U, .beat = 0, .id = c.m_pcie_awid, .due = 0});
    }
    if (c.m_pcie_wvalid != 0 && c.m_pcie_wready != 0) {
      Beat beat{.strobe = c.m_pcie_wstrb, .last = c.m_pcie_wlast != 0, .data = {}};
      std::memcpy(beat.data.data(), c.m_pcie_wdata.m_storage, beat.data.size());
      data_.push_back(beat);
    }
    if (c.m_pcie_bvalid != 0 && c.m_pcie_bready != 0) {
      b_offered_ = false;
      answers_.pop_front();
    }
    return take_data(now);
  }

 private:
  struct Burst {
    std::uint64_t address = 0;
    std::uint32_t beats = 0, beat = 0;
    std::uint8_t id = 0;
    std::uint64_t due = 0;
    bool found = true;
  };
  struct Beat {
    std::uint64_t strobe = 0;
    bool last = false;
    std::array<std::byte, kLineBytes> data{};
  };

  static std::string check(const char* channel, std::uint64_t address, std::uint32_t length, std::uint32_t size) {
    const std::uint64_t last = address / kLineBytes * kLineBytes + std::uint64_t{length} * kLineBytes;
    if (size == kLineSize && address >> kBoundaryBits == last >> kBoundaryBits) return {};
    return fmt::format("{}: {} beats of 2^{} bytes at {:#x}", channel, length + 1, size, address);
  }
  std::string take_data(std::uint64_t now) {
    for (; !writes_.empty() && !data_.empty(); data_.pop_front()) {
      Burst& write = writes_.front();
      const Beat& beat = data_.front();
      const std::uint64_t base = write.address / kLineBytes * kLineBytes + std::uint64_t{write.beat} * kLineBytes;
      for (std::size_t from = 0; from < kLineBytes; ++from) {
        std::size_t to = from;
        while (to < kLineBytes && (beat.strobe >> to & 1) != 0) ++to;
        if (to == from) continue;
        if (base + from < write.address) return fmt::format("W has a strobe below {:#x}", write.address);
        write.found = memory_.write(base + from, std::span(beat.data).subspan(from, to - from)) && write.found;
        from = to;
      }
      ++write.beat;
      if (beat.last != (write.beat == write.beats)) return "WLAST does not agree with AWLEN";
      if (!beat.last) continue;
      answers_.push_back(write);
      answers_.back().due = now + kPosting;
      writes_.pop_front();
    }
    return {};
  }

  HostMemory memory_;
  std::deque<Burst> reads_, writes_, answers_;
  std::deque<Beat> data_;
  bool r_offered_ = false, b_offered_ = false;
};

struct NodeCard::Pins {
  VerilatedContext context;
  std::unique_ptr<Vbypass_node_dma> card;
  std::unique_ptr<BarPins> bars;
};

NodeCard::NodeCard(HostMemory memory, std::uint64_t seed, std::uint32_t pauses)
    : pauses_(seed, pauses), host_(std::make_unique<HostPort>(std::move(memory))), pins_(std::make_unique<Pins>()) {
  Verilated::threadContextp(&pins_->context);
  pins_->card = std::make_unique<Vbypass_node_dma>(&pins_->context);
  pins_->bars = std::make_unique<BarPins>(*pins_->card);
  pins_->card->rst_i = 1;
  for (std::uint64_t i = 0; i < kResetCycles; ++i) tick();
  pins_->card->rst_i = 0;
}

NodeCard::~NodeCard() {
  // To delete a model, the Verilator runtime uses the context of the deleting thread.
  Verilated::threadContextp(&pins_->context);
  pins_->card->final();
  pins_->card.reset();
}

void NodeCard::fail(const std::string& why) const {
  fmt::print(stderr, "bypass_node_dma, cycle {}: {}\n", now_, why);
  std::abort();
}

void NodeCard::tick() {
  Vbypass_node_dma& c = *pins_->card;
  Verilated::threadContextp(&pins_->context);
  pins_->context.time(now_);  // what messages show
  bars_.drive(*pins_->bars, pauses_, now_);
  host_->drive(c, pauses_, now_);
  c.clk_i = 0;
  c.eval();  // what depends on inputs without a clock
  if (c.rst_i == 0) {
    bool moved = false;
    if (const std::string broken = bars_.sample(*pins_->bars, moved); !broken.empty()) fail(broken);
    if (const std::string broken = host_->sample(c, now_); !broken.empty()) fail(broken);
  }
  c.clk_i = 1;
  c.eval();
  ++now_;
}

template <typename Condition>
void NodeCard::run_until(const char* what, const Condition& condition) {
  for (const std::uint64_t begin = now_; !condition(); tick())
    if (now_ - begin > kLongestAccess) fail(fmt::format("{} does not end", what));
}

std::uint32_t NodeCard::read32(std::uint32_t address) {
  std::uint32_t value = 0;
  read(address, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

void NodeCard::write32(std::uint32_t address, std::uint32_t value) {
  write(address, std::as_bytes(std::span(&value, 1)));
}

void NodeCard::post(std::uint32_t address, std::span<const std::byte> data) {
  bars_.post_write(first_write(address, data.size()), data);
}

void NodeCard::write(std::uint32_t address, std::span<const std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_write(address, data.size());
    bars_.post_write(burst, data.first(burst.bytes));
    run_until("a write", [this] { return bars_.writes_answered() == bars_.writes_posted(); });
    address += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

void NodeCard::read(std::uint32_t address, std::span<std::byte> data) {
  while (!data.empty()) {
    const AxiBurst burst = first_read(address, data.size());
    bars_.post_read(burst, 0);
    run_until("a read", [this] { return bars_.answer().has_value(); });
    std::ranges::copy(bars_.answer()->data, data.begin());
    bars_.pop_answer();
    address += burst.bytes;
    data = data.subspan(burst.bytes);
  }
}

}  // namespace wherry::sim
