// SPDX-License-Identifier: Apache-2.0
// The record that `wherry bypass up` writes before it takes any function. If the process is killed, the next command
// uses the record to give the functions back. There is one file per NIC, in a directory that belongs to root.
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
  /// The start time of the process, in the kernel's ticks. It distinguishes the process from a later one with the same
  /// number.
  std::uint64_t started = 0;
  pci::BusAddress nic{}, card{};
  std::vector<pci::Lent> lent;  ///< in the order in which they were taken
};

/// Start time in ticks since the machine started. 0: no such process, or a zombie.
std::uint64_t process_start(pid_t pid);

class RecordStore {
 public:
  /// `directory`: normally "/run/wherry-bypass".
  explicit RecordStore(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] std::string file_of(pci::BusAddress nic) const;
  /// The socket at which the process of a NIC answers `status`.
  [[nodiscard]] std::string socket_of(pci::BusAddress nic) const;

  /// kPermissionDenied: the directory does not belong to root, or the user is not root.
  Status write(const Record& record) const;
  /// No value: no function was taken. kProtocol: the file cannot be parsed; the message gives the remedy.
  Result<std::optional<Record>> read(pci::BusAddress nic) const;
  /// kPermissionDenied: this user must not read the directory. A missing directory counts as empty.
  [[nodiscard]] Status readable() const;
  /// All records that can be read.
  [[nodiscard]] std::vector<Record> all() const;
  void remove(pci::BusAddress nic) const noexcept;
  /// Whether the process that wrote the record still runs.
  [[nodiscard]] static bool alive(const Record& record);
  /// Gives back the functions that a dead process had taken, and removes the record. Returns a sentence for each
  /// function given back.
  Result<std::vector<std::string>> mend(const Record& record, const pci::Binding& binding) const;

 private:
  std::string directory_;
};

/// Parses the file's text. kProtocol: it is not a record.
Result<Record> parse_record(const std::string& text);
std::string record_text(const Record& record);

}  // namespace wherry::bypass
