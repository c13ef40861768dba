// SPDX-License-Identifier: Apache-2.0
// ADIOS2's C++ interface, one file for the whole run, one step a frame. Puts are synchronous at the end of the step
// (EndStep), after which the application may overwrite its arrays.
#include <adios2.h>

#include <memory>

#include "error.h"
#include "peers/fix_peer.hpp"

namespace wherry::lammps {
namespace {

class FixAdios final : public FixPeer {
 public:
  FixAdios(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments)
      : FixPeer(lammps, argument_count, arguments) {
    io_ = adios_.DeclareIO("frames");
    io_.SetEngine("BP5");
  }
  ~FixAdios() override {
    if (engine_) engine_.Close();
  }

 private:
  arrow::Status put(const arrow::RecordBatch& batch) override {
    if (!engine_) engine_ = io_.Open(where_, adios2::Mode::Write);
    engine_.BeginStep();
    for (int i = 0; i < batch.num_columns(); ++i) {
      const std::string& name = batch.schema()->field(i)->name();
      const auto rows = static_cast<std::size_t>(batch.num_rows());
      if (batch.column(i)->type_id() == arrow::Type::INT32) {
        const auto& numbers = static_cast<const arrow::Int32Array&>(*batch.column(i));
        put(name, {rows}, numbers.raw_values());
      } else {
        const auto& lists = static_cast<const arrow::FixedSizeListArray&>(*batch.column(i));
        put(name, {rows, 3}, static_cast<const arrow::DoubleArray&>(*lists.values()).raw_values());
      }
    }
    engine_.EndStep();
    return arrow::Status::OK();
  }
  template <typename T>
  void put(const std::string& name, const adios2::Dims& shape, const T* values) {
    auto variable = io_.InquireVariable<T>(name);
    if (!variable) variable = io_.DefineVariable<T>(name, shape, adios2::Dims(shape.size(), 0), shape, true);
    engine_.Put(variable, values, adios2::Mode::Deferred);
  }

  adios2::ADIOS adios_;
  adios2::IO io_;
  adios2::Engine engine_;
};

}  // namespace

void* create_adios(void* lammps, int argument_count, char** arguments) {
  return static_cast<LAMMPS_NS::Fix*>(new FixAdios(static_cast<LAMMPS_NS::LAMMPS*>(lammps), argument_count, arguments));
}

}  // namespace wherry::lammps
