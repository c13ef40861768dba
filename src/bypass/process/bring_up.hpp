// SPDX-License-Identifier: Apache-2.0
// `wherry bypass up`: takes two functions from their kernel drivers, lets the card drive the NIC, and gives both back.
//
// Each step is undone, in reverse order, if a later one fails, if the process is told to stop, and at the end. If the
// process is killed, the kernel itself ends DMA and mappings, and RecordStore knows what is left to undo.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "bypass/card.hpp"
#include "bypass/functions.hpp"
#include "bypass/nic/nic.hpp"
#include "bypass/path.hpp"
#include "bypass/process/host_way.hpp"
#include "bypass/process/preflight.hpp"
#include "bypass/process/record.hpp"
#include "pci/vfio.hpp"

namespace wherry::bypass {

/// Where the NIC's rings and frames lie.
enum class RingPlace : std::uint8_t {
  kAuto,  ///< in the card; in the host's memory if NIC and card cannot reach each other and the card has a DMA engine
  kCard,
  kHost,  ///< docs/design/bypass-host-rings.md
};

struct UpOptions {
  pci::BusAddress nic{}, card{};
  std::string sysfs = "/sys";
  bool promiscuous = false;
  bool in_place = false;
  std::uint32_t frame_bytes = 1518;  ///< longest frame, with FCS
  std::uint32_t pairs = 1;           ///< queue pairs
  bool allow_detour = false;         ///< go on although traffic passes the root complex, if the pre-flight test says so
  RingPlace rings = RingPlace::kAuto;
  bool preflight = true;
  std::uint64_t seed = 0;                   ///< of the pre-flight test's frames
  std::optional<FunctionSetup> function{};  ///< that is switched on; none: the functions' registers stay as they are
};

/// The parts that tests replace by models.
struct UpParts {
  pci::Kernel& kernel;
  RecordStore records;
  /// Access to NIC and card through the container. The Vfio outlives both.
  std::function<std::unique_ptr<Registers>(const pci::VfioDevice&)> registers;
  std::function<std::unique_ptr<CardAccess>(const pci::VfioDevice&)> card;
  OpenEngine engine;
};
/// The parts that use the real kernel.
UpParts linux_parts(std::string directory);

struct UpReport {
  PathReport path{};
  PreflightReport preflight{};
  bool moved = false;    ///< the pre-flight test ran
  bool kept = false;     ///< a function could not be given back after a failure; a note names it
  bool in_host = false;  ///< the rings are in the host's memory
  std::vector<std::string> notes;
  Finding finding;  ///< why it ended; kNone: another error, or none
};

class BringUp {
 public:
  /// If `stop` becomes true, ends early and undoes everything: kCancelled. The report contains what was known by
  /// then.
  static Result<std::unique_ptr<BringUp>> begin(UpParts parts, const pci::PciTree& tree, const UpOptions& options,
                                                const std::atomic<bool>& stop, UpReport& report);
  /// As begin(), but ends after the pre-flight test. Used by `wherry bypass probe --move`.
  static Status probe(UpParts parts, const pci::PciTree& tree, const UpOptions& options, const std::atomic<bool>& stop,
                      UpReport& report);
  BringUp(const BringUp&) = delete;
  BringUp& operator=(const BringUp&) = delete;
  ~BringUp();

  /// If the rings are in the host's memory, moves what is there (HostWay::turn()); call it in a loop. False: there was
  /// no work. Otherwise always false. Errors: as HostRings::turn(); after one, end() is the only thing left to do.
  Result<bool> turn();
  /// None if the rings are in the card.
  [[nodiscard]] const HostRingsCounters* host_counters() const noexcept {
    return host_way_ ? &host_way_->counters() : nullptr;
  }
  /// Stops the card and the NIC, and gives both back. The status names functions that could not be given back; they
  /// stay in the record.
  Status end();
  [[nodiscard]] Card& card() noexcept { return *card_; }
  [[nodiscard]] Nic& nic() noexcept { return *nic_; }
  [[nodiscard]] const UpOptions& options() const noexcept { return options_; }

 private:
  BringUp(UpParts parts, const pci::PciTree& tree, const UpOptions& options, const std::atomic<bool>& stop,
          UpReport& report)
      : parts_(std::move(parts)),
        binding_(parts_.kernel, options.sysfs),
        tree_(tree),
        options_(options),
        stop_(stop),
        report_(report) {}
  static Result<std::unique_ptr<BringUp>> attempt(const UpParts& parts, const pci::PciTree& tree,
                                                  const UpOptions& options, const std::atomic<bool>& stop,
                                                  UpReport& report);
  Status open();
  Status check_path();
  Status take();
  Status open_vfio();
  Status open_devices();
  Status fly();
  Status open_host_way();
  Status hand_over();
  Status wait_for_tails();
  [[nodiscard]] Status go_on() const;

  UpParts parts_;
  pci::Binding binding_;
  const pci::PciTree& tree_;
  UpOptions options_;
  const std::atomic<bool>& stop_;
  UpReport& report_;
  Record record_{};
  std::unique_ptr<pci::Vfio> vfio_;
  std::unique_ptr<Registers> registers_;
  std::unique_ptr<CardAccess> access_;
  std::unique_ptr<Nic> nic_;
  std::unique_ptr<HostWay> host_way_;  ///< if the rings are in the host's memory
  std::unique_ptr<Card> card_;
  std::optional<Functions> functions_;  ///< while ours runs
  bool started_ = false;
};

}  // namespace wherry::bypass
