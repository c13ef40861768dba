// SPDX-License-Identifier: Apache-2.0
// Private to flight_server.cpp: the payloads of one DoGet.
#pragma once

#include <arrow/flight/server.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/options.h>

#include <atomic>
#include <deque>
#include <nlohmann/json_fwd.hpp>

#include "move/operate/query.hpp"
#include "move/service/catalogue.hpp"
#include "move/service/flight_ticket.hpp"

namespace wherry::move {

class FrameStream final : public arrow::flight::FlightDataStream {
 public:
  /// `schema`: the stream's. `query`: null for unchanged frames; its answers lie in `pool`. `context` lives as long as
  /// the call, and so longer than this object. `stopping` lives as long as the server.
  FrameStream(Catalogue& catalogue, const arrow::flight::ServerCallContext& context, const std::atomic<bool>& stopping,
              FlightTicket ticket, const StreamStatus& status, std::shared_ptr<arrow::Schema> schema,
              std::shared_ptr<const Query> query, std::shared_ptr<arrow::MemoryPool> pool,
              std::uint64_t max_message_bytes);

  std::shared_ptr<arrow::Schema> schema() override { return schema_; }
  arrow::Result<arrow::flight::FlightPayload> GetSchemaPayload() override;
  /// Returns the next payload. A follower blocks until one exists, the client disconnects or the server stops.
  arrow::Result<arrow::flight::FlightPayload> Next() override;

 private:
  arrow::Status fetch();
  arrow::Status prepare(const FramePtr& frame, std::uint64_t skipped);
  arrow::Status add_frame(const FramePtr& frame, std::uint64_t skipped);
  arrow::Status add_stored(const FramePtr& frame, std::uint64_t skipped);
  [[nodiscard]] nlohmann::json about(const Frame& frame, std::uint64_t skipped) const;
  arrow::Status add_batch(const Frame& frame, std::uint64_t skipped, const arrow::RecordBatch& part, std::int64_t rows,
                          std::int64_t first_row);

  Catalogue& catalogue_;
  const arrow::flight::ServerCallContext& context_;
  const std::atomic<bool>& stopping_;
  const FlightTicket ticket_;
  const std::uint64_t generation_;
  const std::uint64_t end_;  ///< first sequence that is not wanted
  const std::shared_ptr<const Query> query_;
  const std::shared_ptr<arrow::Schema> schema_;    ///< of what is sent
  const std::shared_ptr<arrow::MemoryPool> pool_;  ///< before what lies in it
  const arrow::ipc::DictionaryFieldMapper mapper_;
  const arrow::ipc::IpcWriteOptions options_;
  const std::uint64_t max_message_bytes_;
  std::uint64_t at_;
  std::uint64_t sent_ = 0;
  const std::shared_ptr<Loans::Borrower> borrower_ = std::make_shared<Loans::Borrower>();
  FramePtr current_;  ///< its payloads are in payloads_ or were asked for
  std::deque<arrow::flight::FlightPayload> payloads_;
};

}  // namespace wherry::move
