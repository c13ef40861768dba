// SPDX-License-Identifier: Apache-2.0
#include "flight_server.hpp"

#include <arrow/buffer.h>
#include <arrow/flight/server.h>
#include <arrow/record_batch.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

namespace wherry::bench {

namespace flight = arrow::flight;

namespace {

class Server final : public flight::FlightServerBase {
 public:
  arrow::Status DoPut(const flight::ServerCallContext& /*context*/, std::unique_ptr<flight::FlightMessageReader> reader,
                      std::unique_ptr<flight::FlightMetadataWriter> writer) override {
    const auto acknowledgment = arrow::Buffer::FromString("1");
    std::shared_ptr<arrow::RecordBatch> held;
    for (;;) {
      ARROW_ASSIGN_OR_RAISE(flight::FlightStreamChunk chunk, reader->Next());
      if (chunk.data == nullptr) return arrow::Status::OK();
      held = std::move(chunk.data);
      ARROW_RETURN_NOT_OK(writer->WriteMetadata(*acknowledgment));
    }
  }
};

void require_arrow(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error("Flight server: " + status.ToString());
}

}  // namespace

int serve_flight(int port_pipe) {
  Server server;
  const auto at = flight::Location::ForGrpcTcp("127.0.0.1", 0);
  require_arrow(at.status());
  require_arrow(server.Init(flight::FlightServerOptions(*at)));
  require_arrow(server.SetShutdownOnSignals({SIGTERM}));
  const int port = server.port();
  if (write(port_pipe, &port, sizeof port) != sizeof port) return 1;
  close(port_pipe);
  require_arrow(server.Serve());
  return 0;
}

}  // namespace wherry::bench
