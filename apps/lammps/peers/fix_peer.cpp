// SPDX-License-Identifier: Apache-2.0
#include "peers/fix_peer.hpp"

#include <cstring>
#include <utility>

#include "atom.h"
#include "error.h"
#include "modify.h"
#include "update.h"

namespace wherry::lammps {
namespace {

std::shared_ptr<arrow::Array> numbers(const std::shared_ptr<arrow::DataType>& type, const void* data,
                                      std::int64_t count) {
  auto buffer = std::make_shared<arrow::Buffer>(static_cast<const std::uint8_t*>(data), count * type->byte_width());
  return arrow::MakeArray(arrow::ArrayData::Make(type, count, {nullptr, std::move(buffer)}, 0));
}

std::shared_ptr<arrow::DataType> vector_type() {
  return arrow::fixed_size_list(arrow::field("item", arrow::float64(), false), 3);
}

}  // namespace

FixClock::FixClock(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments)
    : Fix(lammps, argument_count, arguments) {
  if (argument_count != 4 && argument_count != 5)
    error->all(FLERR, "fix peer/clock takes N, and maybe a clock to stop");
  nevery = LAMMPS_NS::utils::inumeric(FLERR, arguments[3], false, lmp);
  if (argument_count == 5) first_ = arguments[4];
  vector_flag = 1;
  size_vector = 2;
  global_freq = 1;
  extvector = 0;
}

int FixClock::setmask() {
  using namespace LAMMPS_NS::FixConst;
  if (!first_.empty()) return PRE_FORCE | POST_FORCE;
  return INITIAL_INTEGRATE | PRE_FORCE | POST_FORCE | END_OF_STEP | POST_RUN;
}

/// Runs before or after the forces: the first clock fix starts the time, the second one stops it.
void FixClock::turn() {
  if (update->ntimestep % nevery != 0) return;
  if (first_.empty()) return start();
  auto* const first = dynamic_cast<FixClock*>(modify->get_fix_by_id(first_));
  if (first == nullptr) error->all(FLERR, "fix peer/clock: there is no clock {}", first_);
  first->stop();
}

void FixClock::end_of_step() { start(); }

void FixClock::initial_integrate(int /*vflag*/) {
  stop();
  if (std::exchange(in_run_, true)) return;
  run_start_ = Clock::now();
}

void FixClock::post_run() {
  running_ = false;
  if (std::exchange(in_run_, false)) {
    run_seconds_ += std::chrono::duration<double>(Clock::now() - run_start_).count();
  }
}

void FixClock::start() {
  running_ = true;
  start_ = Clock::now();
}

void FixClock::stop() {
  if (running_) seconds_ += std::chrono::duration<double>(Clock::now() - start_).count();
  running_ = false;
}

FixPeer::FixPeer(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments)
    : Fix(lammps, argument_count, arguments) {
  if (argument_count < 6) error->all(FLERR, "fix {} takes N, where to, and attributes", arguments[2]);
  nevery = LAMMPS_NS::utils::inumeric(FLERR, arguments[3], false, lmp);
  where_ = arguments[4];
  std::vector<std::shared_ptr<arrow::Field>> fields;
  for (int i = 5; i < argument_count; ++i) {
    const std::string name = arguments[i];
    const bool number = name == "id" || name == "type";
    if (!number && name != "x" && name != "v") error->all(FLERR, i, "fix {} knows id, type, x and v", arguments[2]);
    fields.push_back(arrow::field(name, number ? arrow::int32() : vector_type(), false));
    attributes_.push_back(name);
  }
  schema_ = arrow::schema(fields);
}

int FixPeer::setmask() { return LAMMPS_NS::FixConst::END_OF_STEP; }

void FixPeer::end_of_step() {
  if (active_) check(put(*batch()));
}

int FixPeer::modify_param(int argument_count, char** arguments) {
  if (argument_count < 2 || std::strcmp(arguments[0], "active") != 0) return 0;
  active_ = LAMMPS_NS::utils::logical(FLERR, arguments[1], false, lmp) != 0;
  return 2;
}

std::shared_ptr<arrow::RecordBatch> FixPeer::batch() const {
  const std::int64_t atoms = atom->nlocal;
  std::vector<std::shared_ptr<arrow::Array>> arrays;
  for (const std::string& name : attributes_) {
    void* const data = atom->extract(name.c_str());
    if (name == "id" || name == "type") {
      arrays.push_back(numbers(arrow::int32(), data, atoms));
    } else {
      auto values = numbers(arrow::float64(), *static_cast<void**>(data), 3 * atoms);
      arrays.push_back(std::make_shared<arrow::FixedSizeListArray>(vector_type(), atoms, std::move(values)));
    }
  }
  return arrow::RecordBatch::Make(schema_, atoms, std::move(arrays));
}

void FixPeer::check(const arrow::Status& status) const {
  if (!status.ok()) error->one(FLERR, "fix {}: {}", style, status.ToString());
}

}  // namespace wherry::lammps
