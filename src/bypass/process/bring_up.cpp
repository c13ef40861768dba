// SPDX-License-Identifier: Apache-2.0
#include "bypass/process/bring_up.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/try.hpp"
#include "bypass/process/devices.hpp"

namespace wherry::bypass {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kNicIndex = 0, kCardIndex = 1;  // in the container
constexpr std::uint64_t kMessageAddress = 0x10'0000;  // where the search for room for messages begins
constexpr auto kTailLimit = 200ms;                    // for the card's first write of a tail: it takes microseconds

constexpr const char* kNoOtherWay =
    "Rings in the host's memory do without traffic between NIC and card, but need a card with the DMA engine beside "
    "the "
    "core, and a host that works for each frame (docs/design/bypass-host-rings.md).";
constexpr const char* kInHost =
    "The rings are in the host's memory: each frame crosses PCIe four times, and this process must run. It uses one "
    "processor core. While it is stopped, no frame moves.";

/// Returns whether a cause is fatal. The others only mean that traffic takes a detour.
bool is_fatal(Cause cause) { return cause != Cause::kNoCommonPort && cause != Cause::kAcsRedirect; }

/// Returns whether the card may have the DMA engine: whether it has the engine's BAR.
bool may_have_engine(const pci::PciTree& tree, pci::BusAddress card) {
  const pci::PciFunction* function = tree.find(card);
  return function != nullptr && function->bars[VfioCardEngine::kBar].bytes >= VfioCardEngine::kBarBytes;
}

}  // namespace

UpParts linux_parts(std::string directory) {
  return {.kernel = pci::linux_kernel(),
          .records = RecordStore(std::move(directory)),
          .registers = [](const pci::VfioDevice& device) { return std::make_unique<VfioRegisters>(device); },
          .card = [](const pci::VfioDevice& device) { return std::make_unique<VfioCard>(device); },
          .engine = &VfioCardEngine::open};
}

Result<std::unique_ptr<BringUp>> BringUp::begin(UpParts parts, const pci::PciTree& tree, const UpOptions& options,
                                                const std::atomic<bool>& stop, UpReport& report) {
  auto up = attempt(parts, tree, options, stop, report);
  if (up || report.kept || options.rings != RingPlace::kAuto || !is_of_peer_to_peer(report.finding.cause)) return up;
  if (!may_have_engine(tree, options.card)) {
    report.notes.emplace_back(kNoOtherWay);
    return up;
  }
  report.notes.push_back(fmt::format("Rings in the card are not possible: {}", report.finding.what));
  const Finding first = std::exchange(report.finding, {});
  UpOptions in_host = options;
  in_host.rings = RingPlace::kHost;
  auto again = attempt(parts, tree, in_host, stop, report);
  const StatusCode code = again.status().code();
  if (code != StatusCode::kNotFound && code != StatusCode::kUnsupported && code != StatusCode::kVersionMismatch)
    return again;
  // What BAR 4 has is no engine of ours, so the first finding is the answer.
  report.notes.push_back(fmt::format("Nor are rings in the host's memory: {}.", again.status().message()));
  report.in_host = false;
  report.finding = first;
  return up;
}

Result<std::unique_ptr<BringUp>> BringUp::attempt(const UpParts& parts, const pci::PciTree& tree,
                                                  const UpOptions& options, const std::atomic<bool>& stop,
                                                  UpReport& report) {
  std::unique_ptr<BringUp> up(new BringUp(parts, tree, options, stop, report));
  Status done = up->open();
  if (done) done = up->hand_over();
  if (done) return up;
  if (Status ended = up->end(); !ended) {
    report.kept = true;
    report.notes.push_back(ended.message());
  }
  return done;
}

Status BringUp::probe(UpParts parts, const pci::PciTree& tree, const UpOptions& options, const std::atomic<bool>& stop,
                      UpReport& report) {
  BringUp up(std::move(parts), tree, options, stop, report);
  Status done = up.open();
  Status ended = up.end();
  return done ? ended : done;
}

BringUp::~BringUp() { (void)end(); }

Status BringUp::go_on() const {
  if (stop_.load(std::memory_order_relaxed))
    return {StatusCode::kCancelled, "stopped before it was up; everything was given back"};
  return {};
}

Status BringUp::open() {
  if (options_.function) WHERRY_TRY(check_function(*options_.function, options_.in_place));
  WHERRY_TRY(check_path());
  WHERRY_TRY(take());
  WHERRY_TRY(go_on());
  WHERRY_TRY(open_vfio());
  WHERRY_TRY(go_on());
  WHERRY_TRY(open_devices());
  WHERRY_TRY(go_on());
  return fly();
}

Status BringUp::check_path() {
  WHERRY_ASSIGN(report_.path, judge_path(tree_, options_.nic, options_.card));
  report_.in_host = options_.rings == RingPlace::kHost;
  for (const Finding& finding : report_.path.findings) {
    if (report_.in_host && is_of_peer_to_peer(finding.cause)) continue;
    if (!is_fatal(finding.cause) && options_.allow_detour) {
      report_.notes.push_back(finding.what + " It goes on, since --allow-detour was given.");
      continue;
    }
    report_.finding = finding;
    return {StatusCode::kFailedPrecondition, finding.what};
  }
  return {};
}

Status BringUp::take() {
  WHERRY_ASSIGN(const auto before, parts_.records.read(options_.nic));
  if (before && RecordStore::alive(*before))
    return {StatusCode::kAlreadyExists,
            fmt::format("process {} drives the NIC {}: `wherry bypass status` shows it, `wherry bypass down` ends it",
                        before->pid, options_.nic.text())};
  if (before) {
    WHERRY_ASSIGN(const auto mended, parts_.records.mend(*before, binding_));
    report_.notes.insert(report_.notes.end(), mended.begin(), mended.end());
  }
  record_ = {.pid = getpid(),
             .started = process_start(getpid()),
             .nic = options_.nic,
             .card = options_.card,
             .lent = {binding_.describe(options_.nic), binding_.describe(options_.card)}};
  // Write the record before the function is taken.
  if (Status written = parts_.records.write(record_); !written) {
    record_.lent.clear();
    return written;
  }
  for (const pci::Lent& lent : record_.lent) WHERRY_TRY(binding_.take(lent));
  return {};
}

Status BringUp::open_vfio() {
  const pci::PciFunction *nic = tree_.find(options_.nic), *card = tree_.find(options_.card);
  const std::array devices{options_.nic, options_.card};
  const std::array groups{nic->group, card->group};
  WHERRY_ASSIGN(pci::Vfio vfio, pci::Vfio::open(parts_.kernel, devices, groups));
  vfio_ = std::make_unique<pci::Vfio>(std::move(vfio));
  const auto map = [&](std::size_t index, unsigned bar, std::uint64_t address) {
    Status mapped = vfio_->map_bar(index, bar, address);
    if (mapped.code() == StatusCode::kFailedPrecondition)
      report_.finding = {Cause::kReservedAddress, mapped.message(), ""};
    return mapped;
  };
  if (report_.in_host) return {};  // NIC and card use the host's memory only
  // The window's bus address is used: a switch routes it directly; after an ACS redirect the IOMMU keeps it unchanged.
  WHERRY_TRY(map(kCardIndex, kWindowBar, card->bars[kWindowBar].on_bus));
  return map(kNicIndex, 0, nic->bars[0].on_bus);
}

Status BringUp::open_devices() {
  const pci::PciFunction* nic = tree_.find(options_.nic);
  const Personality* personality = personality_of(nic->vendor, nic->device);
  if (personality == nullptr)
    return {StatusCode::kUnsupported,
            fmt::format("the NIC {} ({:04x}:{:04x}) is not one that is driven: `wherry bypass probe` lists them",
                        nic->text(), nic->vendor, nic->device)};
  pci::VfioDevice &nic_device = vfio_->device(kNicIndex), &card_device = vfio_->device(kCardIndex);
  DmaMemory messages;
  if (personality->hand_over == HandOver::kVirtchnl) {
    WHERRY_ASSIGN(messages.address, vfio_->free_iova(kMessageMemory, kMessageAddress));
    WHERRY_ASSIGN(messages.bytes, vfio_->map_memory(kMessageMemory, messages.address));
  }
  registers_ = parts_.registers(nic_device);
  access_ = parts_.card(card_device);
  WHERRY_ASSIGN(nic_, make_nic(*personality, *registers_, messages));
  if (Status done = nic_device.reset(); !done && done.code() != StatusCode::kUnsupported) return done;
  for (const pci::VfioDevice* device : {&nic_device, &card_device}) {
    WHERRY_TRY(device->forbid_relaxed_ordering());
    WHERRY_TRY(device->set_bus_master(true));
  }
  return nic_->reset();
}

Status BringUp::fly() {
  // A killed process leaves the core running, and a running pair blocks access to its slots.
  if (auto core = Card::open(*access_); core && core->running()) WHERRY_TRY(core->stop());
  if (report_.in_host) return open_host_way();
  if (!options_.preflight) {
    report_.notes.emplace_back("No data was moved before: the pre-flight test was switched off.");
    return {};
  }
  if (!nic_->has_loopback()) {
    report_.notes.push_back(
        fmt::format("No data was moved before: a NIC of the family {} has no loopback.", nic_->personality().name));
    return {};
  }
  const std::uint64_t window = tree_.find(options_.card)->bars[kWindowBar].on_bus;
  report_.preflight = run_preflight(*nic_, *access_, {.window = window, .seed = options_.seed});
  report_.moved = true;
  if (report_.preflight.finding.cause == Cause::kNone) return {};
  report_.finding = report_.preflight.finding;
  return {StatusCode::kFailedPrecondition, report_.finding.what};
}

Status BringUp::open_host_way() {
  WHERRY_ASSIGN(host_way_,
                HostWay::open(*vfio_, kCardIndex, nic_->personality(), *registers_, options_.pairs, parts_.engine));
  if (options_.preflight) {
    if (Status copied = host_way_->try_copies(*access_, options_.seed); !copied) {
      report_.finding = {Cause::kEngineDead, copied.message(), "Load the bitstream again."};
      return {StatusCode::kFailedPrecondition, copied.message()};
    }
  }
  report_.notes.emplace_back(kInHost);
  return {};
}

Status BringUp::hand_over() {
  WHERRY_TRY(go_on());
  WHERRY_ASSIGN(Card card, Card::open(*access_));
  card_ = std::make_unique<Card>(card);
  const std::uint64_t window = host_way_ ? host_way_->mirror() : tree_.find(options_.card)->bars[kWindowBar].on_bus;
  WHERRY_TRY(card_->configure(nic_->personality(), {.window = window,
                                                    .nic = tree_.find(options_.nic)->bars[0].on_bus,
                                                    .in_place = options_.in_place,
                                                    .frame_bytes = options_.frame_bytes,
                                                    .pairs = options_.pairs,
                                                    .through_root = !host_way_ && report_.path.route != Route::kDirect,
                                                    .mailbox = host_way_ ? host_way_->mailbox() : 0}));
  if (host_way_) host_way_->begin(card_->shape());
  if (options_.function) {
    WHERRY_ASSIGN(functions_, Functions::open(*access_));
    WHERRY_TRY(functions_->configure(*options_.function, nic_->mac(), options_.in_place));
  }
  const CardShape& shape = card_->shape();
  WHERRY_TRY(nic_->start({.rings = {.rx = window + kRxRings,
                                    .tx = window + kTxRings,
                                    .rx_entries = shape.rx_entries,
                                    .tx_entries = shape.tx_entries},
                          .pairs = options_.pairs,
                          .ring_stride = kRingStride,
                          .slot_bytes = kSlotBytes,
                          .frame_bytes = options_.frame_bytes,
                          .promiscuous = options_.promiscuous}));
  started_ = true;
  // Start the card last: a tail that is written to a queue that is off would be lost.
  WHERRY_TRY(card_->start());
  WHERRY_TRY(wait_for_tails());
  return functions_ ? functions_->start() : Status();
}

Status BringUp::wait_for_tails() {
  for (std::uint32_t pair = 0; pair < options_.pairs; ++pair) {
    const std::uint32_t tail = nic_->personality().rx_tail_offset + nic_->personality().rx_tail_stride * pair;
    for (auto waited = 0us; registers_->read(tail) == 0; waited += 1ms) {
      if (waited >= kTailLimit) {
        report_.finding = {
            Cause::kTailsDead,
            "The card gave the NIC its slots, and the NIC's tail register did not change: the card's writes do not "
            "arrive.",
            host_way_ ? "See that the card's bridge may master the bus."
                      : "Put both into slots behind one PCIe switch, and see that the card's bridge may master the "
                        "bus."};
        return {StatusCode::kFailedPrecondition, report_.finding.what};
      }
      WHERRY_TRY(turn());
      registers_->pause(1ms);
    }
  }
  return {};
}

Result<bool> BringUp::turn() {
  if (!host_way_) return false;
  return host_way_->turn();
}

Status BringUp::end() {
  Status first;
  const auto keep = [&](const Status& status) {
    if (!status && first.ok()) first = status;
  };
  if (functions_) {
    keep(functions_->stop());
    functions_.reset();
  }
  // The card stops sending requests before the NIC stops answering. After that, neither can reach the other, and both
  // are given back.
  if (started_) {
    started_ = false;
    keep(card_->stop());
    keep(nic_->stop());
    if (host_way_) keep(host_way_->stop());
  }
  host_way_.reset();
  nic_.reset();
  card_.reset();
  registers_.reset();
  access_.reset();
  vfio_.reset();
  if (record_.lent.empty()) return first;
  bool all = true;
  for (auto lent = record_.lent.rbegin(); lent != record_.lent.rend(); ++lent) {
    Status back = binding_.give_back(*lent);
    all = all && back.ok();
    keep(back);
  }
  if (all) parts_.records.remove(options_.nic);
  record_.lent.clear();
  return first;
}

}  // namespace wherry::bypass
