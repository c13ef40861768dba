// SPDX-License-Identifier: Apache-2.0
#include "sim/core.hpp"

#include <Vkv_card.h>
#include <Vkv_card___024root.h>
#include <fmt/core.h>
#include <verilated.h>
#ifdef WHERRY_RTL_TRACE
#include <verilated_fst_c.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <span>

#include "kv/generated/registers.hpp"
#include "sim/axi_host.hpp"
#include "sim/axi_lite.hpp"
#include "sim/axi_reader.hpp"
#include "sim/hbm_pins.hpp"
#include "sim/link.hpp"

namespace wherry::kv::rtl {
namespace {

constexpr std::size_t kBeatBytes = 64;
constexpr std::size_t kLinkBuffer = 4096;
constexpr Cycles kReset = 8;
constexpr Cycles kAfterTimer = 16;
constexpr Cycles kLongestAccess = 1'000'000;

/// A stream's pins, by direction.
struct InPins {
  CData* valid;
  const CData* ready;
  VlWide<16>* data;
  QData* keep;
  CData* last;
  QData* user;
};
struct OutPins {
  const CData* valid;
  CData* ready;
  const VlWide<16>* data;
  const QData* keep;
  const CData* last;
  const QData* user;
};

}  // namespace

struct Core::Pins {
  VerilatedContext context;
  std::unique_ptr<Vkv_card> core;
#ifdef WHERRY_RTL_TRACE
  VerilatedFstC trace;
#endif
  std::array<InPins, 2> in;
  std::array<OutPins, 2> out;
  wherry::sim::AxiLiteManager<Vkv_card> registers;
  wherry::sim::AxiReader<Vkv_card> host;
  std::uint64_t time = 0;
};

Core::Core(const CoreOptions& options)
    : options_(options), random_(options.seed), content_(random_.next() | 1), pins_(std::make_unique<Pins>()) {
  for (std::uint32_t i = 0; i < kChannels; ++i) ports_.emplace_back(content_, options.memory, random_.next());
  Pins& pins = *pins_;
#ifdef WHERRY_RTL_TRACE
  pins.context.traceEverOn(true);
#endif
  Verilated::threadContextp(&pins.context);
  pins.core = std::make_unique<Vkv_card>(&pins.context);
  Vkv_card& c = *pins.core;
  pins.in = {
      InPins{&c.s_net_tvalid, &c.s_net_tready, &c.s_net_tdata, &c.s_net_tkeep, &c.s_net_tlast, &c.s_net_tuser},
      InPins{&c.s_host_tvalid, &c.s_host_tready, &c.s_host_tdata, &c.s_host_tkeep, &c.s_host_tlast, &c.s_host_tuser}};
  pins.out = {
      OutPins{&c.m_net_tvalid, &c.m_net_tready, &c.m_net_tdata, &c.m_net_tkeep, &c.m_net_tlast, &c.m_net_tuser},
      OutPins{&c.m_host_tvalid, &c.m_host_tready, &c.m_host_tdata, &c.m_host_tkeep, &c.m_host_tlast, &c.m_host_tuser}};
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) {
    c.trace(&pins.trace, 99);
    pins.trace.open(options_.trace.c_str());
  }
#else
  if (!options_.trace.empty()) fail("no traces: configure with -DWHERRY_RTL_TRACE=ON");
#endif
  c.rst_i = 1;
  step(kReset);
  c.rst_i = 0;
  now_ = 0;
  active_ = 0;
}

Core::~Core() {
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) pins_->trace.close();
#endif
  // To delete a model, the Verilator runtime uses the context of the deleting thread.
  Verilated::threadContextp(&pins_->context);
  pins_->core->final();
  pins_->core.reset();
}

void Core::fail(const std::string& why) {
  fmt::print(stderr, "the kv core, cycle {}, seed {}: {}\n", now_, options_.seed, why);
  std::abort();
}

void Core::step(Cycles cycles) {
  for (; cycles > 0; --cycles) cycle();
}

/// Internal work that the ports do not show: epochs, an empty table, the timer's requests, a list of sources.
bool Core::works() const {
  const Vkv_card___024root& root = *pins_->core->rootp;
  return root.kv_card__DOT__i_core__DOT__i_recovery__DOT__state_q != 0 ||
         root.kv_card__DOT__i_core__DOT__i_recovery__DOT__op_valid_q != 0 ||
         root.kv_card__DOT__i_core__DOT__i_recovery__DOT__stop_o != 0 ||
         root.kv_card__DOT__i_core__DOT__i_registers__DOT__i_sources__DOT__right_q == 0;
}

void Core::set_clock(Cycles cycles) {
  auto& clock = pins_->core->rootp->kv_card__DOT__i_core__DOT__i_registers__DOT__i_lease__DOT__cycles_q;
  clock = std::max<QData>(clock, cycles);
}

void Core::preset_versions(const std::array<std::uint32_t, kWays>& versions) {
  const std::uint64_t base = read(registers::line_base_offset(0)) | std::uint64_t{read(registers::line_base_offset(1))}
                                                                        << 32;
  const unsigned bits = read(registers::kBucketBitsOffset);
  for (const Cycles end = now_ + kLongestAccess; registers::kStateClearing.get(read(registers::kStateOffset)) != 0;)
    if (now_ > end) fail("the table is not cleared");
  std::vector<bool> done(std::size_t{1} << bits);
  for (std::uint64_t key = 0, missing = done.size(); missing > 0; ++key) {
    const std::uint32_t bucket = bucket_of(hash_of(key), bits);
    if (done[bucket]) continue;
    done[bucket] = true;
    --missing;
    std::array<std::byte, kWays * WayHeader::kBytes> line{};
    for (std::uint32_t way = 0; way < kWays; ++way)
      if (versions[way] != 0)
        WayHeader{.key = key, .version = versions[way], .reserved = 1}.pack(
            std::span(line).subspan(way * WayHeader::kBytes).first<WayHeader::kBytes>());
    for (std::size_t at = 0; at < line.size(); at += kHbmBeatBytes) {
      HbmBeat beat;
      std::memcpy(beat.data(), line.data() + at, kHbmBeatBytes);
      content_.write(base + line.size() * bucket + at, beat);
    }
  }
}

void Core::note_memory_times() {
  const Vkv_card___024root& root = *pins_->core->rootp;
  if (root.kv_card__DOT__i_core__DOT__job_valid != 0) memory_times_.first_job = std::min(memory_times_.first_job, now_);
  if (root.kv_card__DOT__i_core__DOT__word_valid != 0 && root.kv_card__DOT__i_core__DOT__word_ready != 0)
    memory_times_.last_word = now_;
  constexpr int kDone = 16;  // of job_done_t: {done, tag}
  if (root.kv_card__DOT__i_core__DOT__job_done >> kDone != 0) memory_times_.last_done = now_;
}

/// If nothing is in flight, only two things change: the core's clock, and the repetition timer, which may start work
/// when it ends.
void Core::run(Cycles cycles) {
  while (cycles > 0) {
    if (!idle()) {
      cycle();
      --cycles;
      continue;
    }
    Vkv_card___024root& root = *pins_->core->rootp;
    auto& timer = root.kv_card__DOT__i_core__DOT__i_recovery__DOT__timer_q;
    const Cycles skipped = std::min<Cycles>(cycles, timer);
    timer -= static_cast<IData>(skipped);
    root.kv_card__DOT__i_core__DOT__i_registers__DOT__i_lease__DOT__cycles_q += skipped;
    for (HbmPort& port : ports_) port.skip(skipped);
    now_ += skipped;
    skipped_ += skipped;
    cycles -= skipped;
    const Cycles stepped = std::min(cycles, kAfterTimer);
    step(stepped);
    cycles -= stepped;
  }
}

void Core::break_rules() {
  Vkv_card___024root& root = *pins_->core->rootp;
  if (options_.faults.serve_pending_reads) root.kv_card__DOT__i_core__DOT__i_engine__DOT__waits2_q = 0;
  if (options_.faults.commit_before_all) root.kv_card__DOT__i_core__DOT__i_engine__DOT__last_answer2_q = 1;
  // Bit 7 of class_t: a replicate.
  if (options_.faults.forget_unsettled && (root.kv_card__DOT__i_core__DOT__i_engine__DOT__class2_q >> 7 & 1) != 0)
    root.kv_card__DOT__i_core__DOT__i_engine__DOT__same_lane2_q = 0;
  if (options_.faults.keep_lagging_versions) root.kv_card__DOT__i_core__DOT__i_engine__DOT__refresh_q = 0;
  if (options_.faults.ignore_other_flights)
    root.kv_card__DOT__i_core__DOT__i_recovery__DOT__i_handed__DOT__i_walk__DOT__under_way_q = 0;
  if (options_.faults.ignore_other_versions)
    root.kv_card__DOT__i_core__DOT__i_recovery__DOT__i_handed__DOT__i_walk__DOT__best_q =
        root.kv_card__DOT__i_core__DOT__i_recovery__DOT__i_handed__DOT__i_walk__DOT__base_q;
}

void Core::cycle(const wherry::sim::memory::AxiRequest* host) {
  Vkv_card& c = *pins_->core;
  Verilated::threadContextp(&pins_->context);
  pins_->context.time(now_);  // what messages show
  for (const Side side : {Side::kNet, Side::kHost}) {
    drive_in(side);
    drive_out(side);
  }
  drive_hbm(*pins_->core, ports_);
  pins_->registers.drive(*pins_->core);
  if (host != nullptr)
    wherry::sim::drive_axi(*pins_->core, *host);
  else
    pins_->host.drive(*pins_->core);
  c.clk_i = 0;
  c.eval();  // what depends on inputs without a clock
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) pins_->trace.dump(pins_->time++);
#endif
  for (const Side side : {Side::kNet, Side::kHost}) {
    sample_in(side);
    sample_out(side);
  }
  sample_memory();
  pins_->registers.sample(*pins_->core);
  if (host == nullptr) pins_->host.sample(*pins_->core);
  note_memory_times();
  if (works()) active_ = now_;
  c.clk_i = 1;
  c.eval();
  break_rules();
#ifdef WHERRY_RTL_TRACE
  if (!options_.trace.empty()) pins_->trace.dump(pins_->time++);
#endif
  ++now_;
}

void Core::drive_in(Side side) {
  In& in = in_[index(side)];
  const InPins& pins = pins_->in[index(side)];
  if (in.offered) return;  // it stays until it is taken
  *pins.valid = 0;
  if (in.frames.empty()) return;
  const Pending& frame = in.frames.front();
  const StreamOptions& options = side == Side::kNet ? options_.net : options_.host;
  if (frame.not_before > now_ || (options.gaps != 0 && random_.chance(options.gaps))) return;
  const std::size_t bytes = std::min(frame.bytes.size() - in.at, kBeatBytes);
  std::memcpy(pins.data->m_storage, frame.bytes.data() + in.at, bytes);
  std::memset(reinterpret_cast<std::byte*>(pins.data->m_storage) + bytes, 0, kBeatBytes - bytes);
  *pins.keep = bytes == kBeatBytes ? ~QData{0} : (QData{1} << bytes) - 1;
  *pins.last = in.at + bytes == frame.bytes.size() ? 1 : 0;
  *pins.user = frame.bytes.size();
  *pins.valid = 1;
  if (side == Side::kNet) {
    pins_->core->s_net_size = static_cast<SData>(frame.bytes.size());
    pins_->core->s_net_error = *pins.last != 0 && frame.error ? 1 : 0;
  }
  in.offered = true;
}

void Core::sample_in(Side side) {
  In& in = in_[index(side)];
  const InPins& pins = pins_->in[index(side)];
  if (in.offered || !in.frames.empty()) active_ = now_;
  if (!in.offered || *pins.ready == 0) return;
  in.offered = false;
  if (in.at == 0) in.last.first = now_;
  in.at += kBeatBytes;
  if (*pins.last == 0) return;
  in.last.last = now_;
  in.at = 0;
  in.frames.pop_front();
}

void Core::drive_out(Side side) {
  Out& out = out_[index(side)];
  const StreamOptions& options = side == Side::kNet ? options_.net : options_.host;
  out.ready = options.stalls == 0 || !random_.chance(options.stalls);
  if (options.line_rate) {
    out.owed -= std::min(out.owed, kLinkBytesPerCycle);
    out.ready = out.ready && out.owed < kLinkBuffer;
  }
  *pins_->out[index(side)].ready = out.ready ? 1 : 0;
}

void Core::sample_out(Side side) {
  Out& out = out_[index(side)];
  const OutPins& pins = pins_->out[index(side)];
  if (*pins.valid == 0) return;
  active_ = now_;
  if (!out.ready) return;
  if (out.frame.bytes.empty()) out.frame.first = now_;
  const auto bytes = static_cast<std::size_t>(std::popcount(*pins.keep));
  if (bytes == 0 || (*pins.last == 0 && bytes != kBeatBytes) || (bytes < kBeatBytes && *pins.keep >> bytes != 0))
    fail(fmt::format("a beat out has tkeep {:#x}, tlast {}", *pins.keep, *pins.last));
  const auto* data = reinterpret_cast<const std::byte*>(pins.data->m_storage);
  out.frame.bytes.insert(out.frame.bytes.end(), data, data + bytes);
  out.owed += bytes;
  if (*pins.last == 0) return;
  out.owed += wire_bytes(out.frame.bytes.size()) - out.frame.bytes.size();
  out.frame.user = *pins.user;
  out.frame.last = now_;
  out.frames.push_back(std::move(out.frame));
  out.frame = {};
}

void Core::sample_memory() {
  if (sample_hbm(*pins_->core, ports_)) active_ = now_;
  for (std::uint32_t i = 0; i < kChannels; ++i)
    if (!ports_[i].violation().empty()) fail(fmt::format("channel {}: {}", i, ports_[i].violation()));
}

void Core::put(Side side, ByteView frame, Cycles not_before, bool error) {
  in_[index(side)].frames.push_back({{frame.begin(), frame.end()}, not_before, error});
}

std::optional<CoreFrame> Core::take(Side side) {
  std::deque<CoreFrame>& frames = out_[index(side)].frames;
  if (frames.empty()) return std::nullopt;
  std::optional<CoreFrame> first = std::move(frames.front());
  frames.pop_front();
  return first;
}

void Core::access(std::uint32_t offset, const char* what) {
  for (Cycles waited = 0; !pins_->registers.ended(); ++waited) {
    if (waited == kLongestAccess) fail(fmt::format("the {} of register {:#x} does not end", what, offset));
    cycle();
  }
  if (pins_->registers.refused()) fail(fmt::format("the {} of register {:#x} ends with an error", what, offset));
  active_ = now_;  // it may have started something
}

std::uint32_t Core::read(std::uint32_t offset) {
  pins_->registers.begin_read(*pins_->core, offset);
  access(offset, "read");
  return pins_->registers.data();
}

void Core::write(std::uint32_t offset, std::uint32_t value) {
  pins_->registers.begin_write(*pins_->core, offset, value);
  access(offset, "write");
}

void Core::read_memory(std::uint64_t address, std::span<std::byte> to) {
  using wherry::sim::kPageBytes;
  while (!to.empty()) {
    const std::size_t bytes = std::min(to.size(), kPageBytes - address % kPageBytes);
    pins_->host.begin(*pins_->core, address, to.first(bytes));
    for (Cycles waited = 0; !pins_->host.ended() && !pins_->host.refused(); ++waited) {
      if (waited == kLongestAccess) fail(fmt::format("the host's read of memory at {:#x} does not end", address));
      cycle();
    }
    if (pins_->host.refused()) fail(fmt::format("the host's read of memory at {:#x} ends with an error", address));
    address += bytes;
    to = to.subspan(bytes);
  }
  active_ = now_;
}

wherry::sim::memory::AxiAnswer Core::host_answer() const { return wherry::sim::axi_answer(*pins_->core); }

void Core::step_host(const wherry::sim::memory::AxiRequest& in) {
  cycle(&in);
  active_ = now_;
}

}  // namespace wherry::kv::rtl
