// SPDX-License-Identifier: Apache-2.0
// Arrow Flight's DoPut, one call for the whole run, one record batch for each frame. gRPC may still refer to the arrays
// after the write. So the application may overwrite them only after the server's confirmation: it answers each batch
// with a line of metadata.
#include <arrow/flight/api.h>

#include "error.h"
#include "peers/fix_peer.hpp"

namespace wherry::lammps {
namespace {

namespace flight = arrow::flight;

class FixFlight final : public FixPeer {
 public:
  FixFlight(LAMMPS_NS::LAMMPS* lammps, int argument_count, char** arguments)
      : FixPeer(lammps, argument_count, arguments) {
    check(connect());
  }
  ~FixFlight() override {
    if (call_.writer != nullptr) (void)call_.writer->Close();
  }

 private:
  arrow::Status connect() {
    ARROW_ASSIGN_OR_RAISE(const auto location, flight::Location::Parse(where_));
    ARROW_ASSIGN_OR_RAISE(client_, flight::FlightClient::Connect(location));
    ARROW_ASSIGN_OR_RAISE(call_, client_->DoPut(flight::FlightDescriptor::Path({"particles"}), schema_));
    return arrow::Status::OK();
  }
  arrow::Status put(const arrow::RecordBatch& batch) override {
    ARROW_RETURN_NOT_OK(call_.writer->WriteRecordBatch(batch));
    std::shared_ptr<arrow::Buffer> taken;
    ARROW_RETURN_NOT_OK(call_.reader->ReadMetadata(&taken));
    return taken != nullptr ? arrow::Status::OK() : arrow::Status::IOError("the server ended the call");
  }

  std::unique_ptr<flight::FlightClient> client_;
  flight::FlightClient::DoPutResult call_;
};

}  // namespace

void* create_flight(void* lammps, int argument_count, char** arguments) {
  return static_cast<LAMMPS_NS::Fix*>(
      new FixFlight(static_cast<LAMMPS_NS::LAMMPS*>(lammps), argument_count, arguments));
}

}  // namespace wherry::lammps
