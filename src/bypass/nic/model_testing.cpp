// SPDX-License-Identifier: Apache-2.0
#include "bypass/nic/model_testing.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "bypass/descriptor.hpp"

namespace wherry::bypass::testing_support {
namespace {

constexpr std::uint32_t kAll = ~std::uint32_t{0};
constexpr std::uint32_t kEnable = 1U << 25;  // RXDCTL, TXDCTL
constexpr std::uint64_t kQueueStartUs = 20;

}  // namespace

void RegisterModel::define(std::uint32_t offset, std::uint32_t reset, std::uint32_t writable, std::uint32_t count,
                           std::uint32_t stride) {
  for (std::uint32_t i = 0; i < count; ++i) {
    registers_[offset + i * stride] = {reset, writable, false};
    values_[offset + i * stride] = reset;
  }
}

void RegisterModel::define_counter(std::uint32_t offset) {
  registers_[offset] = {0, 0, true};
  values_[offset] = 0;
}

void RegisterModel::reset_all() {
  for (const auto& [offset, one] : registers_) values_[offset] = one.reset;
  enabled_at_.clear();
}

std::uint32_t RegisterModel::value(std::uint32_t offset) const {
  const auto place = values_.find(offset);
  return place == values_.end() ? 0 : place->second;
}

std::uint32_t RegisterModel::read(std::uint32_t offset) {
  if (removed) return kAll;
  const auto place = registers_.find(offset);
  if (place == registers_.end()) {
    fault(fmt::format("read of {:#x}, which is no register", offset));
    return 0;
  }
  if (silent_reset_ && now_us < reset_until_) fault(fmt::format("read of {:#x} during a reset", offset));
  const std::uint32_t value = on_read(offset, values_[offset]);
  if (place->second.clears_on_read) values_[offset] = 0;
  return value;
}

void RegisterModel::write(std::uint32_t offset, std::uint32_t value) {
  if (removed) return;
  const auto place = registers_.find(offset);
  if (place == registers_.end()) {
    fault(fmt::format("write of {:#x}, which is no register", offset));
    return;
  }
  if (now_us < reset_until_) fault(fmt::format("write of {:#x} during a reset", offset));
  const std::uint32_t before = values_[offset], reserved = ~place->second.writable;
  // A write to a reserved bit is allowed if it does not change the bit.
  if (((value ^ before) & reserved & value) != 0 && place->second.writable != 0)
    fault(fmt::format("write of {:#010x} to {:#x}: reserved bits {:#010x}", value, offset,
                      (value ^ before) & reserved & value));
  writes.emplace_back(offset, value);
  values_[offset] = (before & reserved) | (value & place->second.writable);
  on_write(offset, before, values_[offset]);
  run();
}

void RegisterModel::pause(std::chrono::microseconds time) {
  now_us += static_cast<std::uint64_t>(time.count());
  run();
}

void RegisterModel::start_reset(std::uint64_t microseconds, bool silent) {
  ++resets;
  reset_all();
  reset_until_ = now_us + microseconds;
  silent_reset_ = silent;
}

bool RegisterModel::queue_on(std::uint32_t ring) const {
  if (nic_.ring_enable_mask == 0) return value(ring + 0x08) != 0;
  const auto place = enabled_at_.find(ring);
  return (value(ring + 0x28) & kEnable) != 0 && !stuck_queue && place != enabled_at_.end() && now_us >= place->second;
}

void RegisterModel::check_ring(std::uint32_t ring, bool unit_on, std::uint32_t offset, std::uint32_t value) {
  const std::uint32_t place = offset - ring;
  // A queue without an enable bit runs while its unit runs.
  const bool runs = nic_.ring_enable_mask == 0 ? unit_on : (this->value(ring + 0x28) & kEnable) != 0;
  switch (place) {
    case 0x00:
      if (value % 128 != 0) fault("a ring that is not aligned to 128 bytes");
      if (runs) fault("the base of a ring changes while the queue runs");
      break;
    case 0x08:
      if (value % 128 != 0) fault("the length of a ring is not a multiple of 128 bytes");
      if (runs) fault("the length of a ring changes while the queue runs");
      break;
    case 0x10:
      if (runs) fault("the head of a ring is written while the queue runs");
      break;
    case 0x18:
      if (value != 0 && !(unit_on && queue_on(ring))) fault("a tail is written to a queue that is off");
      if (value * 16 >= std::max(this->value(ring + 0x08), 1U) && value != 0) fault("a tail beyond the ring");
      break;
    case 0x28:
      if ((value & kEnable) != 0 && nic_.ring_enable_mask != 0) {
        if (this->value(ring + 0x08) == 0) fault("a queue without a ring starts");
        if (!enabled_at_.contains(ring)) enabled_at_[ring] = now_us + kQueueStartUs;
      } else {
        enabled_at_.erase(ring);
      }
      break;
    default:
      break;
  }
}

std::uint32_t RegisterModel::pairs() const {
  return nic_.ring_enable_mask == 0 ? 1 : std::min<std::uint32_t>(16, nic_.queues);
}

bool RegisterModel::only_pairs_run(std::uint32_t count) const {
  for (std::uint32_t pair = 0; pair < pairs(); ++pair)
    if (queue_on(rx_ring(pair)) != (pair < count) || queue_on(tx_ring(pair)) != (pair < count)) return false;
  return receiving() && transmitting();
}

void RegisterModel::define_rings() {
  for (const std::uint32_t first : {nic_.rx_ring_offset, nic_.tx_ring_offset}) {
    define(first + 0x00, 0, kAll, pairs(), 0x40);
    define(first + 0x04, 0, kAll, pairs(), 0x40);
    define(first + 0x08, 0, 0xF'FFFF, pairs(), 0x40);
    define(first + 0x10, 0, 0xFFFF, pairs(), 0x40);
    define(first + 0x18, 0, 0xFFFF, pairs(), 0x40);
  }
}

void RegisterModel::define_spreading() {
  define(0x5C00, 0, 0x0F0F'0F0F, 32);
  define(0x5C80, 0, kAll, 10);
}

void RegisterModel::check_spreading(std::uint32_t offset, std::uint32_t value) {
  if (offset != 0x5818 || (value & 7) == 0) return;
  if ((this->value(0x5000) & 1U << 13) == 0) fault("RSS without RXCSUM.PCSD");
  for (std::uint32_t word = 0; word < 10; ++word)
    if (this->value(0x5C80 + 4 * word) == 0) fault("RSS with a key that is not set");
}

void RegisterModel::run() {
  if (removed || !bus_master || now_us < reset_until_) return;
  if (!transmitting() || !queue_on(nic_.tx_ring_offset)) return;
  while (value(nic_.tx_ring_offset + 0x10) != value(nic_.tx_ring_offset + 0x18))
    if (!send_one()) return;
}

bool RegisterModel::send_one() {
  const std::uint32_t ring = nic_.tx_ring_offset, head = value(ring + 0x10);
  const std::uint64_t base = value(ring) | std::uint64_t{value(ring + 4)} << 32,
                      place = base + std::uint64_t{16} * head;
  std::array<std::byte, kDescriptorBytes> raw{};
  if (!bus.read(place, raw)) return false;
  const TxPart part = read_tx(nic_, load(raw));
  std::vector<std::byte> frame(part.bytes);
  if (part.kind == TxKind::kData && !bus.read(part.address, frame)) return false;
  at(ring + 0x10) = (head + 1) % (value(ring + 8) / 16);
  if (part.report) {
    store(make_tx_done(nic_), raw);
    (void)bus.write(place, raw);
  }
  if (part.kind != TxKind::kData) return true;
  ++at(0x4080);
  if (frame.size() < 60) frame.resize(60);
  if (!looping()) on_wire(frame);
  if (looping() && !loses_loopback) receive(frame);
  return true;
}

void RegisterModel::receive(const std::vector<std::byte>& frame) {
  const std::uint32_t ring = nic_.rx_ring_offset, head = value(ring + 0x10);
  if (!receiving() || !queue_on(ring) || head == value(ring + 0x18)) return;
  const std::uint64_t base = value(ring) | std::uint64_t{value(ring + 4)} << 32,
                      place = base + std::uint64_t{16} * head;
  std::array<std::byte, kDescriptorBytes> raw{};
  if (!bus.read(place, raw) || frame.size() > buffer_bytes()) return;
  ++at(0x4074);
  (void)bus.write(load(raw).low, frame);
  store(make_rx_done(nic_, {.bytes = static_cast<std::uint32_t>(frame.size()), .errors = 0, .end = true}), raw);
  (void)bus.write(place, raw);
  at(ring + 0x10) = (head + 1) % (value(ring + 8) / 16);
}

// ---- 82574 (datasheet chapter 10), 82576 and I210 (chapter 8). Register names are those of the datasheets.

namespace {

constexpr std::uint32_t kCtrl = 0x0, kStatus = 0x8, kEecd = 0x10, kCtrlExt = 0x18, kMdic = 0x20, kIcr = 0xC0,
                        kImc = 0xD8, kRctl = 0x100, kTctl = 0x400, kExtcnf = 0xF00, kSwsm = 0x5B50, kSwFwSync = 0x5B5C;
constexpr std::uint32_t kCtrlMasterDisable = 1U << 2, kCtrlSlu = 1U << 6, kCtrlRst = 1U << 26;

}  // namespace

GigabitModel::GigabitModel(const Personality& personality) : RegisterModel(personality) {
  define(kCtrl, 0x0018'0241, 0xFFFF'FFFF);
  define(kStatus, 0x0008'0080, 0);
  define(kEecd, 0x0, 0);
  define(kCtrlExt, 0x0, kAll);
  define(kMdic, 0x1000'0000, 0x3FFF'FFFF);
  define(0x28, 0, kAll);     // FCAL
  define(0x2C, 0, 0xFFFF);   // FCAH
  define(0x30, 0, 0xFFFF);   // FCT
  define(0x170, 0, 0xFFFF);  // FCTTV
  define(kIcr, 0, 0);
  define(kImc, 0, kAll);
  define(kRctl, 0, 0x07FF'FFFE);
  define(kTctl, advanced() ? 0x0F00'0008 : 0x3003'F0F8, kAll);
  define(0x5000, 0, 0x3F00 | 0xFF);  // RXCSUM
  define(0x5008, 0, 0x3FFFF);        // RFCTL
  define(0x5818, 0, kAll);           // MRQC
  define(0x5200, 0, kAll, 128);      // MTA
  for (std::uint32_t i = 0; i < 16; ++i) {
    define(0x5400 + 8 * i, i == 0 ? 0x1200'5452 : 0xDEAD'0000 + i, kAll);     // RAL: of 82574 only the first is loaded
    define(0x5404 + 8 * i, i == 0 ? 0x8000'5634 : 0x8000'0000, 0x9003'FFFF);  // RAH
  }
  define_counter(0x4074);  // GPRC
  define_counter(0x4080);  // GPTC
  const std::uint32_t rx = nic_.rx_ring_offset, tx = nic_.tx_ring_offset;
  define_rings();
  if (advanced()) {
    define_spreading();
    define(0x1528, 0, kAll);                                            // EIMC
    define(0x5B00, 0x1'0000, 0x1'F000);                                 // GCR
    define(0x5004, 0x2600, 0x3FFF);                                     // RLPML
    define(rx + 0x0C, 0x400, 0x8E00'3F7F | 0x3F0'0000, pairs(), 0x40);  // SRRCTL
    define(rx + 0x14, 0xA200, 0xFF00'F3E0, pairs(), 0x40);   // DCA_RXCTRL: relaxed ordering is on after a reset
    define(tx + 0x14, 0x2A00, 0xFF00'2A20, pairs(), 0x40);   // DCA_TXCTRL
    define(rx + 0x28, 0x10000, 0x061F'1F1F, pairs(), 0x40);  // RXDCTL
    define(rx + 0x28, kEnable | 0x10000, 0x061F'1F1F);       // of queue 0: on after a reset
    define(tx + 0x28, 0, 0x0E1F'1F1F, pairs(), 0x40);        // TXDCTL
    define(rx + 0x38, 0, 0xE000'0000, pairs(), 0x40);        // DVMOLR
    define(kSwsm, 0, 0x3);
    define(kSwFwSync, 0, 0xFF);
  } else {
    define(rx + 0x28, 0x0001'0000, 0x013F'3F3F);  // RXDCTL
    define(tx + 0x28, 0x0040'0000, 0xFF7F'3F3F);  // TXDCTL
    define(0x2820, 0, 0xFFFF);                    // RDTR
    define(0x282C, 0, 0xFFFF);                    // RADV
    define(0x410, 0x0060'200A, 0x3FFF'FFFF);      // TIPG
    define(0x3840, 0x403, 0x7FFF'FFFF);           // TARC0
    define(kExtcnf, 0, 0x20);
    define(0xE4, 0, 0x800F'FFFF);  // IVAR
  }
  reset_all();
}

void GigabitModel::on_write(std::uint32_t offset, std::uint32_t before, std::uint32_t value) {
  if (offset == kCtrl && (value & kCtrlRst) != 0) {
    if ((value & kCtrlMasterDisable) == 0) fault("a reset without Master Disable");
    if ((at(kRctl) & 2) != 0) fault("a reset while the receiver is on");
    start_reset(3000, true);
    return;
  }
  if (offset == kExtcnf && firmware_has_phy) at(kExtcnf) &= ~0x20U;
  if (offset == kMdic) {
    if (advanced() ? (at(kSwFwSync) & 2) == 0 : (at(kExtcnf) & 0x20) == 0) fault("MDIC without the semaphore");
    if ((value >> 21 & 31) != 1 || (value >> 16 & 31) != 0) fault("MDIC of another PHY or register");
    mdi_ready_ = now_us + 100;
    if ((value >> 26 & 3) == 1) {
      phy_control = static_cast<std::uint16_t>(value & 0xFFFF & ~0x200U);
      phy_off = (value & 0x800) != 0;
      link_since_ = now_us + 2'000'000;
    } else {
      at(kMdic) = (value & ~0xFFFFU) | (phy_off ? phy_control | 0x800U : phy_control);
    }
    at(kMdic) &= ~(1U << 28);
  }
  if (offset == kSwFwSync && (at(kSwsm) & 2) == 0) fault("SW_FW_SYNC without its semaphore");
  if (offset == kRctl && (value & 2) != 0 && (before & 2) == 0 && this->value(nic_.rx_ring_offset + 8) == 0)
    fault("the receiver starts without a ring");
  check_spreading(offset, value);
  for (std::uint32_t pair = 0; pair < pairs(); ++pair)
    for (const std::uint32_t ring : {rx_ring(pair), tx_ring(pair)})
      if (offset >= ring && offset < ring + 0x40)
        check_ring(ring, ring == rx_ring(pair) ? receiving() : transmitting(), offset, value);
}

bool GigabitModel::link_up() const {
  if ((value(kCtrl) & kCtrlSlu) == 0) return false;
  return looping() || (cable && !phy_off && now_us >= link_since_);
}

std::uint32_t GigabitModel::on_read(std::uint32_t offset, std::uint32_t value) {
  switch (offset) {
    case kCtrl:
      return stuck_reset && resets != 0 ? value | kCtrlRst : value;
    case kStatus:
      if ((this->value(kCtrl) & kCtrlMasterDisable) != 0 && !stuck_master) value &= ~(1U << 19);
      return link_up() ? value | 2 : value;
    case kEecd:
      return now_us >= reset_until_ + 500 ? value | 1U << 9 : value;
    case kMdic:
      return now_us >= mdi_ready_ ? value | 1U << 28 : value;
    default:
      break;
  }
  // ENABLE reads as 1 when the queue runs (82576 4.5.9).
  for (std::uint32_t pair = 0; pair < pairs(); ++pair)
    for (const std::uint32_t ring : {rx_ring(pair), tx_ring(pair)})
      if (advanced() && offset == ring + 0x28 && (value & kEnable) != 0 && enabled_at_.contains(ring) &&
          !queue_on(ring))
        return value & ~kEnable;
  return value;
}

bool GigabitModel::receiving() const { return (value(kRctl) & 2) != 0; }
bool GigabitModel::transmitting() const {
  return (value(kTctl) & 2) != 0 && (value(kCtrl) & kCtrlMasterDisable) == 0 && link_up();
}
/// LBM is 01b, and speed and duplex of the MAC are forced, because the PHY does not set them (82576 3.5.6).
bool GigabitModel::looping() const { return (value(kRctl) & 0xC0) == 0x40 && (value(kCtrl) & 0x1841) == 0x1841; }

std::uint32_t GigabitModel::buffer_bytes() const {
  if (advanced()) return (value(nic_.rx_buffer_offset) & 0x7F) * 1024;
  const std::uint32_t size = value(kRctl) >> 16 & 3;
  return (value(kRctl) & 1U << 25) != 0 ? 32768U >> size : 2048U >> size;
}

// ---- 82599 (datasheet chapter 8).

TenGigabitModel::TenGigabitModel(const Personality& personality) : RegisterModel(personality) {
  define(0x0, 0, 0x0400'000C);                 // CTRL
  define(0x8, 1U << 19, 0);                    // STATUS
  define(0x18, 0, 0x1003'0000 | 0x4000);       // CTRL_EXT
  define(0x800, 0, 0);                         // EICR
  define(0x888, 0, kAll);                      // EIMC
  define(0xAB0, 0, kAll, 2);                   // EIMC_EX
  define(0x3000, 0, 1);                        // RXCTRL
  define(0x2F00, 0x0000'8800, 0x0BFE'002B);    // RDRXCTL; DMAIDONE is read only, and may be written
  define(0x4240, 0x0001'0001, 0x1FF1'FFFF);    // HLREG0
  define(0x4268, 0x05EE'0000, 0xFFFF'0000);    // MAXFRS
  define(0x42A0, 0x8000'8000 | 0x6000, kAll);  // AUTOC: LMS 111b
  define(0x42A4, 0, 0);                        // LINKS
  define(0x42B0, 0, 0);                        // ANLP1
  define(0x4330, 0, 1);                        // MACC (X540)
  define(0x4900, 0, 0x40);                     // RTTDCS
  define(0x4A80, 0x100, 0x1FF);                // DMATXCTL
  define(0x5000, 0, 0x3000);                   // RXCSUM
  define(0x5080, 0x400, 0xFFFF);               // FCTRL
  define(0x5818, 0, kAll);                     // MRQC
  define(0x8120, 0, 0xF);                      // MTQC
  define(0x8D00, 0, 3);                        // SECRXCTRL
  define(0x8D04, 0, 0);                        // SECRXSTAT
  define(0x1'0010, 0, 0);                      // EEC
  define(0x5200, 0, kAll, 128);                // MTA
  for (std::uint32_t i = 0; i < 16; ++i) {
    define(0x5400 + 8 * i, i == 0 ? 0x1200'5452 : 0, kAll);
    define(0x5404 + 8 * i, i == 0 ? 0x8000'5634 : 0, 0x8040'FFFF);
  }
  define_counter(0x4074);
  define_counter(0x4080);
  for (std::uint32_t queue = 0; queue < 128; ++queue) {
    const std::uint32_t rx = queue < 64 ? 0x1000 + 0x40 * queue : 0xD000 + 0x40 * (queue - 64),
                        tx = 0x6000 + 0x40 * queue;
    define(rx + 0x28, 0, kEnable | 1U << 26 | 1U << 30);
    define(tx + 0x28, 0, kEnable | 1U << 26 | 0x7F'7F7F);
  }
  define_rings();
  define_spreading();
  define(0x1014, 0x402, 0x1FC0'3F1F | 0x0E00'0000, pairs(), 0x40);  // SRRCTL
  define(0x2200, 0xB200, 0xFF00'F3E0, pairs());                     // DCA_RXCTRL: with the bit that 4.6.7 says to clear
  define(0x600C, 0x2A00, 0xFF00'2A20, pairs(), 0x40);               // DCA_TXCTRL
  define(0x1'1000, 0x1'0000, 0x1'F000);                             // GCR
  reset_all();
}

void TenGigabitModel::on_write(std::uint32_t offset, std::uint32_t before, std::uint32_t value) {
  if (offset == 0x0 && (value & 0x0400'0008) != 0) {
    if ((value & 4) == 0 && (before & 4) == 0 && resets == 0) fault("a reset without Master Disable");
    if ((at(0x3000) & 1) != 0) fault("a reset while the receiver is on");
    start_reset(8, false);
    return;
  }
  if (offset == 0x8120 && (at(0x4900) & 0x40) == 0) fault("MTQC changes while the arbiter is on");
  if (offset == 0x3000 && (value & 1) != 0 && (at(0x8D00) & 2) == 0)
    fault("the receiver starts with the security block open");
  check_spreading(offset, value);
  if (offset >= 0x6028 && offset < 0x6028 + 0x40 * pairs() && (offset - 0x6028) % 0x40 == 0 && (value & kEnable) != 0 &&
      (at(0x4A80) & 1) == 0)
    fault("a transmit queue starts before DMATXCTL.TE");
  if (offset == 0x42A0 && (value & 1U << 12) != 0) at(0x42B0) = 1U << 16;  // negotiation leaves state 0
  for (std::uint32_t pair = 0; pair < pairs(); ++pair)
    for (const std::uint32_t ring : {rx_ring(pair), tx_ring(pair)})
      if (offset >= ring && offset < ring + 0x40 && offset != ring + 0x0C && offset != ring + 0x14)
        check_ring(ring, ring == rx_ring(pair) ? queue_on(ring) : transmitting(), offset, value);
}

std::uint32_t TenGigabitModel::on_read(std::uint32_t offset, std::uint32_t value) {
  switch (offset) {
    case 0x0:
      return now_us < reset_until_ || (stuck_reset && resets != 0) ? value | 0x0400'0000 : value;
    case 0x8:
      return (this->value(0x0) & 4) != 0 && !stuck_master ? value & ~(1U << 19) : value;
    case 0x42A4:
      return link_up() ? 0x7000'0000U : 0U;
    case 0x8D04:
      return (this->value(0x8D00) & 2) != 0 ? 1U : 0U;
    case 0x1'0010:
      return now_us >= reset_until_ + 10'000 ? 1U << 9 : 0U;
    case 0x2F00:
      return now_us >= reset_until_ + 5'000 ? value | 8 : value;
    default:
      break;
  }
  // ENABLE reads as 1 when the queue runs (82599 4.6.7, 4.6.8).
  for (std::uint32_t pair = 0; pair < pairs(); ++pair)
    for (const std::uint32_t ring : {rx_ring(pair), tx_ring(pair)})
      if (offset == ring + 0x28 && (value & kEnable) != 0 && !queue_on(ring)) return value & ~kEnable;
  return value;
}

bool TenGigabitModel::link_up() const {
  const bool forced = (value(0x42A0) & 0xE001) == 0x2001 || (value(0x4330) & 1) != 0;  // AUTOC.FLU at 10G, MACC.FLU
  return forced || cable;
}
bool TenGigabitModel::receiving() const { return (value(0x3000) & 1) != 0; }
bool TenGigabitModel::transmitting() const { return (value(0x4A80) & 1) != 0 && (value(0x0) & 4) == 0 && link_up(); }
bool TenGigabitModel::looping() const { return (value(0x4240) & 0x8000) != 0; }
std::uint32_t TenGigabitModel::buffer_bytes() const { return (value(0x1014) & 0x1F) * 1024; }

}  // namespace wherry::bypass::testing_support
