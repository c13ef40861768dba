// SPDX-License-Identifier: Apache-2.0
// The ways that LAMMPS's users have today, as fixes, so that all are measured as `fix wherry` is: in a time step, in
// C++. Only for the comparison (apps/lammps/lammps_fix.py). They read all atoms of one MPI rank.
//
//   fix b all peer/clock N            } what the fixes defined between these two, and dumps, take of every N-th step;
//   fix e all peer/clock N b          } the second one stops the first
//   fix a all peer/arrow N PATH attribute ...     Arrow IPC into a mapped file, whose memory is reused
//   fix f all peer/flight N URI attribute ...     Arrow Flight DoPut, until the server says that it has the batch
//   fix g all peer/adios N PATH attribute ...     an ADIOS2 file of engine BP5, one step a frame
//
// Attributes: id type x v.
#pragma once

#include <arrow/api.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fix.h"

namespace wherry::lammps {

using Clock = std::chrono::steady_clock;

/// Host time that frames take, by one clock for all ways. A frame may be taken out of a step at three points: before
/// the forces, after them, and at the step's end. For the first two points, that is the time between this fix and a
/// second one, which stand before and after all others. For the last point it is the time to the next step, because
/// dumps come after all fixes. The end of a run is not counted, because LAMMPS prints its thermo output there.
class FixClock final : public LAMMPS_NS::Fix {
 public:
  FixClock(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments);
  int setmask() override;
  void initial_integrate(int vflag) override;
  void pre_force(int /*vflag*/) override { turn(); }
  void post_force(int /*vflag*/) override { turn(); }
  void end_of_step() override;
  void post_run() override;
  /// Total seconds: of frames, and of runs without their set-up.
  double compute_vector(int index) override { return index == 0 ? seconds_ : run_seconds_; }

 private:
  void turn();
  void start();
  void stop();

  std::string first_;  ///< of the second one: the id of the fix that it stops
  bool running_ = false;
  Clock::time_point start_;
  double seconds_ = 0;
  bool in_run_ = false;
  Clock::time_point run_start_;
  double run_seconds_ = 0;
};

/// Wraps LAMMPS's arrays as an Arrow record batch, without a copy, and hands it to `put` every N steps.
class FixPeer : public LAMMPS_NS::Fix {
 public:
  int setmask() override;
  void end_of_step() override;
  int modify_param(int argument_count, char** arguments) override;  ///< active yes|no

 protected:
  /// fix ID all STYLE N WHERE attribute ...
  FixPeer(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments);
  virtual arrow::Status put(const arrow::RecordBatch& batch) = 0;
  void check(const arrow::Status& status) const;  ///< ends LAMMPS if it is an error
  [[nodiscard]] std::shared_ptr<arrow::RecordBatch> batch() const;

  std::string where_;
  std::shared_ptr<arrow::Schema> schema_;

 private:
  std::vector<std::string> attributes_;
  bool active_ = true;
};

void* create_arrow(void* lammps, int argument_count, char** arguments);
void* create_adios(void* lammps, int argument_count, char** arguments);
void* create_flight(void* lammps, int argument_count, char** arguments);

}  // namespace wherry::lammps
