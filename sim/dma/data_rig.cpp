// SPDX-License-Identifier: Apache-2.0
#include "sim/dma/data_rig.hpp"

#include <Vdma_data.h>
#include <fmt/format.h>
#include <verilated.h>

#include <algorithm>

namespace wherry::sim::dma {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHostBase = 0x1'0000'0000, kCardBase = 0x4'0000'0000;
constexpr std::size_t kMemoryBytes = std::size_t{16} << 20;
constexpr std::uint64_t kHostSeed = 0x4051, kCardSeed = 0xCA4D;
constexpr std::uint64_t kResetCycles = 300;  // the requester sweeps its tags
constexpr std::size_t kBursts = 48;          // that the card's memory has under way

// Bit positions in the ports, where a struct's last field is lowest: hdl/dma/dma_pkg.sv and hdl/common/axi.svh.
namespace turn_bits {
constexpr unsigned kCard = 0, kHost = 64, kBytes = 128, kLast = 141, kChannel = 143;
}
namespace completion_bits {
constexpr unsigned kBytes = 512, kError = 519, kFinal = 522, kLast = 523, kFirst = 524, kTag = 525;
}
namespace read_bits {
constexpr unsigned kAddress = 0, kBytes = 64, kTag = 77;
}
namespace write_bits {
constexpr unsigned kAddress = 512, kBytes = 576, kLast = 589, kFirst = 590;
}
namespace request_bits {
constexpr unsigned kRReady = 0, kArValid = 1, kArSize = 11, kArLen = 14, kArAddress = 22, kBReady = 90, kWValid = 91,
                   kWLast = 92, kWStrobes = 93, kWData = 157, kAwValid = 669, kAwSize = 679, kAwLen = 682,
                   kAwAddress = 690;
}
namespace response_bits {
constexpr unsigned kRValid = 0, kRLast = 1, kRResp = 2, kRData = 4, kArReady = 520, kBValid = 521, kBResp = 522,
                   kWReady = 528, kAwReady = 529;
}
constexpr std::uint32_t kDoneBytes = 0x1FFF;
constexpr unsigned kDoneError = 14, kDoneChannel = 17;
constexpr unsigned kSlaveError = 2, kFullSize = 6;
enum Channel : std::size_t { kAw, kW, kAr, kB, kR };

template <std::size_t N>
std::span<const Word> bits(const VlWide<N>& port) {
  return {port.data(), N};
}
template <std::size_t N>
std::span<Word> bits(VlWide<N>& port) {
  return {port.data(), N};
}

}  // namespace

DataRig::DataRig(const RigOptions& options)
    : options_(options),
      random_(options.seed),
      link_(options.link, options.seed ^ 0x11),
      host_("the host", kHostBase, kMemoryBytes),
      card_("the card", kCardBase, kMemoryBytes),
      core_(std::make_unique<Vdma_data>()) {
  Vdma_data& c = *core_;
  link_.on_fault = [this](const ReadRequest& request, Error error) { fault(Way::kToCard, request.address, error); };
  c.mrrs_i = static_cast<CData>(options.mrrs);
  c.mps_i = static_cast<CData>(options.mps);
  c.timeout_i = static_cast<CData>(options.timeout);
  c.reserve_i = static_cast<CData>(options.reserve);
  c.m_fetched_ready = c.m_axis_ready = 1;
  c.rst_i = 1;
  for (int i = 0; i < 4; ++i) {
    c.clk_i = 0;
    c.eval();
    c.clk_i = 1;
    c.eval();
  }
  c.rst_i = 0;
  for (std::uint64_t i = 0; i < kResetCycles; ++i) cycle();
}

DataRig::~DataRig() { core_->final(); }

void DataRig::wrong(const std::string& why) {
  if (error_.empty()) error_ = fmt::format("cycle {}, seed {}: {}", cycles_, options_.seed, why);
}

void DataRig::post(Way way, const Turn& turn) {
  Side& side = sides_[index(way)];
  if (way == Way::kToCard) card_.open(turn.card, turn.bytes, kHostSeed, turn.host);
  if (way == Way::kToHost) host_.open(turn.host, turn.bytes, kCardSeed, turn.card);
  side.to_offer.push_back(turn);
  side.open.push_back({turn, {}});
}

void DataRig::fault(Way way, std::uint64_t address, Error error) {
  ++faults_injected;
  for (Open& open : sides_[index(way)].open) {
    const std::uint64_t at = way == Way::kToCard && error != Error::kMemory ? open.turn.host : open.turn.card;
    if (address >= at && address < at + open.turn.bytes) open.faults.push_back(error);
  }
}

void DataRig::stop(bool on) {
  stopped_ = on;
  if (on) reset_allowed_ = true;
  core_->stop_i = on ? 1 : 0;
}

bool DataRig::idle() const { return core_->idle_o != 0; }

void DataRig::cycle() {
  Vdma_data& c = *core_;
  link_.cycle();
  drive();
  c.clk_i = 0;
  c.eval();
  sample();
  c.clk_i = 1;
  c.eval();
  ++cycles_;
  if (reset_allowed_ && !stopped_ && idle()) reset_allowed_ = false;
}

void DataRig::drive() {
  drive_turns();
  drive_completion();
  core_->m_read_ready = link_.read_ready() ? 1 : 0;
  core_->m_write_ready = link_.write_ready() ? 1 : 0;
  drive_card();
}

void DataRig::sample() {
  sample_turns();
  sample_reads();
  sample_writes();
  sample_card();
  answer_all();
  if (core_->unexpected_o != 0) ++unexpected;
  if (core_->timed_out_o != 0) ++timed_out;
}

// ---- turns

void DataRig::drive_turns() {
  Vdma_data& c = *core_;
  for (const Way way : {Way::kToCard, Way::kToHost}) {
    Side& side = sides_[index(way)];
    if (!side.offered && !side.to_offer.empty()) {
      const Turn& turn = side.to_offer.front();
      const std::span<Word> port = bits(way == Way::kToCard ? c.s_h2c_payload : c.s_c2h_payload);
      std::ranges::fill(port, 0);
      set_field(port, turn_bits::kCard, 64, turn.card);
      set_field(port, turn_bits::kHost, 64, turn.host);
      set_field(port, turn_bits::kBytes, 13, turn.bytes);
      set_field(port, turn_bits::kLast, 1, turn.last ? 1 : 0);
      set_field(port, turn_bits::kChannel, 2, turn.channel);
      side.offered = true;
    }
    (way == Way::kToCard ? c.s_h2c_valid : c.s_c2h_valid) = side.offered ? 1 : 0;
    (way == Way::kToCard ? c.m_h2c_done_ready : c.m_c2h_done_ready) = static_cast<CData>(!draw(options_.card_pauses));
  }
}

void DataRig::sample_turns() {
  Vdma_data& c = *core_;
  for (const Way way : {Way::kToCard, Way::kToHost}) {
    Side& side = sides_[index(way)];
    const bool to_card = way == Way::kToCard;
    if (side.offered && (to_card ? c.s_h2c_ready : c.s_c2h_ready) != 0) {
      side.to_offer.pop_front();
      side.offered = false;
    }
    if ((to_card ? c.m_h2c_done_valid & c.m_h2c_done_ready : c.m_c2h_done_valid & c.m_c2h_done_ready) != 0) {
      side.answers.push_back(to_card ? c.m_h2c_done_payload : c.m_c2h_done_payload);
    }
  }
}

/// The requester took a turn's last write, but may still have it in its register.
void DataRig::answer_all() {
  const bool held = core_->m_write_valid != 0 && core_->m_write_ready == 0;
  for (const Way way : {Way::kToCard, Way::kToHost}) {
    Side& side = sides_[index(way)];
    if (way == Way::kToHost && held) continue;
    for (const std::uint32_t payload : std::exchange(side.answers, {})) answer(way, payload);
  }
}

void DataRig::answer(Way way, std::uint32_t payload) {
  Side& side = sides_[index(way)];
  if (side.open.empty()) return wrong("an answer to no turn");
  const Open open = std::move(side.open.front());
  side.open.pop_front();
  const Turn& turn = open.turn;
  const auto error = static_cast<Error>(payload >> kDoneError & 7);
  const std::uint32_t moved = payload & kDoneBytes;
  CheckedMemory& memory = way == Way::kToCard ? card_ : host_;
  const std::uint32_t written = memory.close(way == Way::kToCard ? turn.card : turn.host, turn.bytes);
  const std::string where =
      fmt::format("the turn {} of {} bytes from {:#x} on", way == Way::kToCard ? "to the card" : "to the host",
                  turn.bytes, way == Way::kToCard ? turn.host : turn.card);
  if ((payload >> kDoneChannel) != turn.channel) wrong(where + ": another channel's answer");
  if (error == Error::kNone && written != turn.bytes) wrong(fmt::format("{}: only {} came", where, written));
  if (error == Error::kNone && moved != turn.bytes) wrong(fmt::format("{}: says that {} came", where, moved));
  const bool memory_failed = std::ranges::find(open.faults, Error::kMemory) != open.faults.end();
  if (error != Error::kNone && moved != written && !(way == Way::kToCard && memory_failed)) {
    wrong(fmt::format("{}: says that {} came, and {} did", where, moved, written));
  }
  if (error == Error::kNone && !open.faults.empty()) wrong(where + ": a fault was not told");
  if (error == Error::kReset && !reset_allowed_) wrong(where + ": ended by a reset that was none");
  if (error != Error::kNone && error != Error::kReset && std::ranges::find(open.faults, error) == open.faults.end()) {
    wrong(fmt::format("{}: error {} that nobody injected", where, static_cast<unsigned>(error)));
  }
  side.done.push_back({turn, error, moved});
}

// ---- the host

void DataRig::sample_reads() {
  Vdma_data& c = *core_;
  if (c.m_read_valid == 0 || c.m_read_ready == 0) return;
  const std::span<const Word> port = bits(std::as_const(c.m_read_payload));
  const ReadRequest request{.tag = static_cast<std::uint8_t>(field(port, read_bits::kTag, 8)),
                            .bytes = static_cast<std::uint32_t>(field(port, read_bits::kBytes, 13)),
                            .address = field(port, read_bits::kAddress, 64)};
  if (request.bytes == 0 || request.bytes > 128U << options_.mrrs) wrong("a read of no bytes, or more than MRRS");
  if (request.address % kPage + request.bytes > kPage) wrong("a read crosses a page");
  link_.request(request);
}

void DataRig::drive_completion() {
  Vdma_data& c = *core_;
  const CompletionBeat* beat = link_.completion();
  c.s_completion_valid = beat != nullptr ? 1 : 0;
  if (beat == nullptr) return;
  const std::span<Word> port = bits(c.s_completion_payload);
  set_field(port, completion_bits::kTag, 8, beat->tag);
  set_field(port, completion_bits::kFirst, 1, beat->first ? 1 : 0);
  set_field(port, completion_bits::kLast, 1, beat->last ? 1 : 0);
  set_field(port, completion_bits::kFinal, 1, beat->last && beat->final_ ? 1 : 0);
  set_field(port, completion_bits::kError, 3, static_cast<unsigned>(beat->error));
  set_field(port, completion_bits::kBytes, 7, beat->bytes);
  Line data;
  // Poisoned data and lanes without a byte contain garbage.
  for (std::size_t i = 0; i < kLineBytes; ++i) {
    const bool good = i < beat->bytes && beat->error == Error::kNone;
    data[i] = static_cast<std::byte>(good ? source_byte(kHostSeed, beat->address + i) : 0xEE);
  }
  set_line(port, 0, data.data());
}

void DataRig::sample_writes() {
  Vdma_data& c = *core_;
  if (c.s_completion_valid != 0 && c.s_completion_ready != 0) link_.completion_taken();
  if (c.m_write_valid == 0 || c.m_write_ready == 0) return;
  const std::span<const Word> port = bits(std::as_const(c.m_write_payload));
  const bool first = field(port, write_bits::kFirst, 1) != 0, last = field(port, write_bits::kLast, 1) != 0;
  if (first != (write_left_ == 0)) wrong("a write begins within another, or not at all");
  if (first) {
    write_at_ = field(port, write_bits::kAddress, 64);
    write_left_ = static_cast<std::uint32_t>(field(port, write_bits::kBytes, 13));
    if (write_left_ == 0 || write_left_ > 128U << options_.mps) wrong("a write of no bytes, or more than MPS");
    if (write_at_ % kPage + write_left_ > kPage) wrong("a write crosses a page");
    ++writes;
  }
  Line data;
  line(port, 0, data.data());
  const std::uint32_t here = std::min<std::uint32_t>(write_left_, kLineBytes);
  link_.write(here, first);
  for (std::uint32_t i = 0; i < here; ++i) {
    const std::string why = host_.write(write_at_ + i, std::to_integer<std::uint8_t>(data[i]));
    if (!why.empty()) return wrong(why);
  }
  write_at_ += here;
  write_left_ -= here;
  if (last != (write_left_ == 0)) wrong("a write does not end where its bytes do");
}

// ---- the card

void DataRig::drive_card() {
  Vdma_data& c = *core_;
  const std::span<Word> port = bits(c.m_axi_resp);
  for (const std::size_t channel : {kAw, kW, kAr}) {
    const bool room = (channel == kAw   ? to_write_.size() + answers_.size()
                       : channel == kAr ? reads_.size()
                                        : 0) < kBursts;
    ready_[channel] = room && !frozen_ && !draw(options_.card_pauses);
  }
  // The memory does not take data before their address. AXI does not require it to (A3.3.1).
  if (to_write_.empty()) ready_[kW] = false;
  set_field(port, response_bits::kAwReady, 1, ready_[kAw] ? 1 : 0);
  set_field(port, response_bits::kWReady, 1, ready_[kW] ? 1 : 0);
  set_field(port, response_bits::kArReady, 1, ready_[kAr] ? 1 : 0);
  if (!ready_[kB])
    ready_[kB] = !answers_.empty() && answers_.front().due <= cycles_ && !frozen_ && !draw(options_.card_pauses);
  set_field(port, response_bits::kBValid, 1, ready_[kB] ? 1 : 0);
  if (ready_[kB]) set_field(port, response_bits::kBResp, 2, answers_.front().fails ? kSlaveError : 0);
  if (!ready_[kR])
    ready_[kR] = !reads_.empty() && reads_.front().due <= cycles_ && !frozen_ && !draw(options_.card_pauses);
  set_field(port, response_bits::kRValid, 1, ready_[kR] ? 1 : 0);
  if (!ready_[kR]) return;
  const Burst& burst = reads_.front();
  const bool last = burst.sent + 1 == burst.beats;
  const bool fails = burst.fails && (last || (burst.address / kLineBytes + burst.sent) % 3 == 0);
  set_field(port, response_bits::kRLast, 1, last ? 1 : 0);
  set_field(port, response_bits::kRResp, 2, fails ? kSlaveError : 0);
  Line data;
  const std::uint64_t base = (burst.address & ~(kLineBytes - 1)) + burst.sent * kLineBytes;
  for (std::size_t i = 0; i < kLineBytes; ++i) {
    data[i] = static_cast<std::byte>(fails || base + i < burst.address ? 0xEE : source_byte(kCardSeed, base + i));
  }
  set_line(port, response_bits::kRData, data.data());
}

void DataRig::sample_card() {
  Vdma_data& c = *core_;
  const std::span<const Word> port = bits(std::as_const(c.m_axi_req));
  const auto accept = [&](unsigned address, unsigned len, unsigned size) {
    Burst burst{.address = field(port, address, 64), .beats = static_cast<std::uint32_t>(field(port, len, 8)) + 1};
    if (field(port, size, 3) != kFullSize) wrong("a narrow burst");
    const std::uint64_t begin = burst.address & ~(kLineBytes - 1);
    if (begin % kPage + burst.beats * kLineBytes > kPage) wrong("a burst crosses 4 KiB");
    burst.due = cycles_ + options_.card_latency;
    burst.fails = draw(options_.card_faults);
    longest_ = std::max(longest_, burst.beats);
    ++bursts;
    return burst;
  };
  if (ready_[kAw] && field(port, request_bits::kAwValid, 1) != 0) {
    to_write_.push_back(accept(request_bits::kAwAddress, request_bits::kAwLen, request_bits::kAwSize));
    if (to_write_.back().fails) fault(Way::kToCard, to_write_.back().address, Error::kMemory);
  }
  if (ready_[kAr] && field(port, request_bits::kArValid, 1) != 0) {
    reads_.push_back(accept(request_bits::kArAddress, request_bits::kArLen, request_bits::kArSize));
    if (reads_.back().fails) fault(Way::kToHost, reads_.back().address, Error::kMemory);
  }
  if (ready_[kB] && field(port, request_bits::kBReady, 1) != 0) {
    answers_.pop_front();
    ready_[kB] = false;
  }
  if (ready_[kR] && field(port, request_bits::kRReady, 1) != 0) {
    Burst& burst = reads_.front();
    if (++burst.sent == burst.beats) reads_.pop_front();
    ready_[kR] = false;
  }
  if (ready_[kW] && field(port, request_bits::kWValid, 1) != 0) card_write(port);
}

void DataRig::card_write(std::span<const Word> request) {
  Burst& burst = to_write_.front();
  const bool last = field(request, request_bits::kWLast, 1) != 0;
  const std::uint64_t base = (burst.address & ~(kLineBytes - 1)) + burst.sent * kLineBytes;
  std::uint64_t strobes = field(request, request_bits::kWStrobes, 64);
  if (strobes == 0) wrong("a beat without a byte");
  Line data;
  line(request, request_bits::kWData, data.data());
  for (std::size_t i = 0; i < kLineBytes; ++i) {
    if ((strobes >> i & 1) == 0) continue;
    if (base + i < burst.address) wrong("a strobe before the burst's address");
    const std::string why = card_.write(base + i, std::to_integer<std::uint8_t>(data[i]));
    if (!why.empty()) return wrong(why);
  }
  ++burst.sent;
  if (last != (burst.sent == burst.beats)) wrong("WLAST is not where AWLEN says");
  if (last) {
    burst.due = cycles_ + options_.card_latency;
    answers_.push_back(burst);
    to_write_.pop_front();
  }
}

}  // namespace wherry::sim::dma
