// SPDX-License-Identifier: Apache-2.0
// The record that `wherry bypass up` writes before it takes anything. With it, the next command can give back the
// functions of a killed process. Each NIC has a file in a directory that belongs to root.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pci/binding.hpp"
#include "wherry/status.hpp"

namespace wherry::bypass {

struct Record {
  pid_t pid = 0;
  /// The start of the process, in the kernel's ticks, so that a later process with the same number is not confused with
  /// it.
  std::uint64_t started = 0;
  pci::BusAddress nic{}, card{};
  std::vector<pci::Lent> lent;  ///< in the order in which they were taken
};

/// In ticks since the machine started. 0: there is no such process, or it is a zombie.
std::uint64_t process_start(pid_t pid);

class RecordStore {
 public:
  /// "/run/wherry-bypass".
  explicit RecordStore(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] std::string file_of(pci::BusAddress nic) const;
  /// Where the process of a NIC answers `status`.
  [[nodiscard]] std::string socket_of(pci::BusAddress nic) const;

  /// kPermissionDenied: the directory does not belong to root, or this user is not root.
  Status write(const Record& record) const;
  /// None: nothing was taken. kProtocol: the file cannot be understood, with the remedy.
  Result<std::optional<Record>> read(pci::BusAddress nic) const;
  /// kPermissionDenied: this user may not look into the directory. A directory that is missing is empty.
  [[nodiscard]] Status readable() const;
  /// All that can be read.
  [[nodiscard]] std::vector<Record> all() const;
  void remove(pci::BusAddress nic) const noexcept;
  /// Whether the process that wrote it still runs.
  [[nodiscard]] static bool alive(const Record& record);
  /// Gives back the functions that a dead process had taken, and forgets the record. A sentence for each function given
  /// back.
  Result<std::vector<std::string>> mend(const Record& record, const pci::Binding& binding) const;

 private:
  std::string directory_;
};

/// kProtocol. For the file's text.
Result<Record> parse_record(const std::string& text);
std::string record_text(const Record& record);

}  // namespace wherry::bypass
