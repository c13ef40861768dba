// SPDX-License-Identifier: Apache-2.0
// `fix ID all wherry N stream attribute ...`: LAMMPS's per-atom data, as Arrow, without the host's copying or waiting.
//
//   fix w all wherry 10 particles id type x v
//
// Every N steps one frame of the stream gets a row for each atom. Attributes that a time step does not change after the
// atoms have moved (id, type, x ...) are posted directly before the forces are computed. The agent pulls them out of
// LAMMPS's own arrays during that computation. Attributes that are final only at the end of the step (v, f ...), and
// overwritten at once by the next one, are copied then, and posted as the rest of the same frame. With several MPI
// ranks each posts a part of the frame, with its own atoms. Readers see the frame when all parts are there.
// docs/guide/lammps.md has the syntax.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fix.h"
#include "plugin/snapshot_copy.hpp"
#include "wherry/move.hpp"

namespace wherry::lammps {

/// Seconds that the host lost to one fix, by activity.
struct HostTime {
  double calls = 0;   ///< in calls of Wherry
  double copies = 0;  ///< copying what would be overwritten
  double waits = 0;   ///< until the agent had what would be overwritten, or had freed a copy
  double early = 0;   ///< the part of these three that was before the end of the step
  [[nodiscard]] double total() const noexcept { return calls + copies + waits; }
};

/// run_style verlet, group `all`. Errors go through LAMMPS's Error class. Common work of the ranks (MPI calls) is in
/// the constructor, init() and the destructor. A step makes none.
class FixWherry final : public LAMMPS_NS::Fix {
 public:
  /// Reads the arguments and opens the session. The first rank finds or starts the agent, if that is asked for, and the
  /// others join it. The stream is opened by init(), which knows how many atoms there are.
  FixWherry(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments);
  /// Waits for offloads in flight (10 s at most) and closes the stream. The first rank leaves last, because its process
  /// may contain the agent.
  ~FixWherry() override;

  int setmask() override;
  void init() override;
  void pre_force(int vflag) override;
  void post_force(int vflag) override;
  void end_of_step() override;
  /// `fix_modify ID active yes|no`: whether frames are posted.
  int modify_param(int argument_count, char** arguments) override;
  double compute_scalar() override;           ///< seconds that this rank lost
  double compute_vector(int index) override;  ///< frames, bytes, seconds in calls, copies, waits, of all, early
  double memory_usage() override;             ///< bytes of the copies

 private:
  /// A per-atom array of LAMMPS, by the name that Atom::extract() knows.
  struct Attribute {
    std::string name;
    int datatype = 0;          ///< as Atom::extract_datatype()
    std::int32_t columns = 1;  ///< values of an atom
    std::size_t bytes = 0;     ///< of an atom
    bool final_early = false;  ///< no part of a time step changes it once forces are computed
    Region region;             ///< of what is final early: registered once, not for each frame
    const std::byte* registered = nullptr;
    int capacity = 0;  ///< of `registered`, in atoms: LAMMPS moves its arrays only to make them larger
  };
  /// The target of late copies. Two take turns, because the agent may still read one while the other is filled.
  struct Snapshot {
    Memory memory;
    std::optional<Ticket> reader;
  };

  int read_options(int argument_count, char** arguments, int at);
  void add_attribute(const char* name);
  void open_session();
  void open_stream();
  void agree(const Status& status) const;
  [[nodiscard]] bool due() const;
  [[nodiscard]] const std::byte* data_of(const Attribute& attribute) const;
  [[nodiscard]] Column column_of(const Attribute& attribute, const std::byte* data, std::size_t index);
  void keep_registered(Attribute& attribute, const std::byte* data);
  void copy_late(Snapshot& to);
  void wait(const Ticket& ticket);
  Ticket posted(Result<Ticket> ticket);
  [[noreturn]] void fail(const Status& status);

  std::shared_ptr<Session> session_;
  std::optional<Stream> stream_;
  StreamOptions options_;
  SessionOptions session_options_;
  std::vector<Attribute> attributes_;
  std::size_t late_bytes_ = 0;  ///< of an atom
  bool early_ = false;          ///< some attribute is final early
  bool active_ = true;
  bool failed_ = false;  ///< LAMMPS is ending because of this fix

  std::vector<Column> columns_;  ///< reused
  std::vector<Column> items_;    ///< of columns_ that are lists; reused
  std::optional<Ticket> early_ticket_;
  std::array<Snapshot, 2> snapshots_;
  std::size_t turn_ = 0;
  SnapshotCopy copier_;

  HostTime lost_;
  std::uint64_t frames_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace wherry::lammps
