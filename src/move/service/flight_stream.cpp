// SPDX-License-Identifier: Apache-2.0
#include "move/service/flight_stream.hpp"

#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "move/service/frame_arrow.hpp"

namespace wherry::move {
namespace {

namespace flight = arrow::flight;

/// A follower whose client went away learns of it when it asks, and keeps its thread until then. It asks in intervals
/// that grow with its wait: clients that come and go quickly leave few threads behind, and one that waits long costs
/// little.
constexpr std::chrono::milliseconds kFirstSlice{1};
constexpr std::chrono::milliseconds kLastSlice{64};
constexpr const char* kResourceExhausted = "resource_exhausted";  ///< in an error, for which Flight has no code
constexpr std::chrono::seconds kPatience{10};                     ///< while other readers hold as much as readers may

}  // namespace

FrameStream::FrameStream(Catalogue& catalogue, const flight::ServerCallContext& context,
                         const std::atomic<bool>& stopping, FlightTicket ticket, const StreamStatus& status,
                         std::shared_ptr<arrow::Schema> schema, std::uint64_t max_message_bytes)
    : catalogue_(catalogue),
      context_(context),
      stopping_(stopping),
      ticket_(std::move(ticket)),
      generation_(status.generation),
      end_(std::min(ticket_.until.value_or(std::numeric_limits<std::uint64_t>::max()),
                    ticket_.follow ? std::numeric_limits<std::uint64_t>::max() : status.next)),
      schema_(std::move(schema)),
      mapper_(*schema_),
      options_(arrow::ipc::IpcWriteOptions::Defaults()),
      max_message_bytes_(max_message_bytes),
      at_(ticket_.from) {}

arrow::Result<flight::FlightPayload> FrameStream::GetSchemaPayload() {
  flight::FlightPayload payload;
  ARROW_RETURN_NOT_OK(arrow::ipc::GetSchemaPayload(*schema_, options_, mapper_, &payload.ipc_message));
  return payload;
}

arrow::Result<flight::FlightPayload> FrameStream::Next() {
  if (payloads_.empty()) {
    // Asking for more means that everything before has been written.
    if (current_ != nullptr) {
      if (ticket_.part)
        catalogue_.mark_read(*current_, static_cast<std::uint32_t>(*ticket_.part));
      else
        catalogue_.mark_read(*current_);
      current_.reset();
    }
    ARROW_RETURN_NOT_OK(fetch());
    if (payloads_.empty()) return flight::FlightPayload();
  }
  flight::FlightPayload payload = std::move(payloads_.front());
  payloads_.pop_front();
  return payload;
}

/// Leaves payloads_ empty at the end.
arrow::Status FrameStream::fetch() {
  using What = Catalogue::Next::What;
  std::chrono::milliseconds slice = kFirstSlice;
  std::optional<std::chrono::steady_clock::time_point> refused_since;
  while (at_ < end_ && (!ticket_.count || sent_ < *ticket_.count)) {
    if (stopping_.load())
      return flight::MakeFlightError(flight::FlightStatusCode::Unavailable, "the agent is shutting down");
    if (context_.is_cancelled()) return arrow::Status::Cancelled("the client went away");
    Catalogue::Next next = catalogue_.next(ticket_.stream, at_, ticket_.follow ? slice : std::chrono::milliseconds(0),
                                           generation_, borrower_);
    if (next.what == What::kHeldTooMuch) {  // by others: this one lets go of a frame as soon as it has been sent
      const auto now = std::chrono::steady_clock::now();
      if (!refused_since) refused_since = now;
      if (now - *refused_since > kPatience)
        return flight::MakeFlightError(flight::FlightStatusCode::TimedOut, next.why.message(), kResourceExhausted);
      std::this_thread::sleep_for(slice);
      slice = std::min(2 * slice, kLastSlice);
      continue;
    }
    slice = std::min(2 * slice, kLastSlice);
    if (next.what == What::kTimeout && ticket_.follow) continue;
    if (next.what != What::kFrame || next.frame->sequence >= end_) break;
    for (std::size_t part = 0; part < next.frame->frames(); ++part) {
      if (ticket_.part && part != *ticket_.part) continue;
      ARROW_RETURN_NOT_OK(prepare(frame_of(next.frame, part), next.skipped));
    }
    at_ = next.frame->sequence + 1;
    ++sent_;
    current_ = std::move(next.frame);
    break;
  }
  return arrow::Status::OK();
}

arrow::Status FrameStream::prepare(const FramePtr& frame, std::uint64_t skipped) {
  const auto batch = read_frame(frame);
  if (!batch) return arrow::Status::UnknownError(batch.status().message());
  ARROW_ASSIGN_OR_RAISE(const auto dictionaries, arrow::ipc::CollectDictionaries(**batch, mapper_));
  for (const auto& [id, values] : dictionaries) {
    flight::FlightPayload payload;
    ARROW_RETURN_NOT_OK(arrow::ipc::GetDictionaryPayload(id, values, options_, &payload.ipc_message));
    payloads_.push_back(std::move(payload));
  }
  if (frame->layout.total_bytes > max_message_bytes_) {
    ARROW_RETURN_NOT_OK((*batch)->ValidateFull());  // cutting follows offsets inside the columns
  }
  return add_batch(*frame, skipped, **batch, 0);
}

/// In halves, as long as it is too large for a message.
arrow::Status FrameStream::add_batch(const Frame& frame, std::uint64_t skipped, const arrow::RecordBatch& part,
                                     std::int64_t first_row) {
  flight::FlightPayload payload;
  ARROW_RETURN_NOT_OK(arrow::ipc::GetRecordBatchPayload(part, options_, &payload.ipc_message));
  if (payload.ipc_message.body_length > static_cast<std::int64_t>(max_message_bytes_) && part.num_rows() > 1) {
    std::int64_t half = part.num_rows() / 2;
    if (half > 64) half -= half % 64;  // so that bitmaps are cut between bytes and need not be shifted
    ARROW_RETURN_NOT_OK(add_batch(frame, skipped, *part.Slice(0, half), first_row));
    return add_batch(frame, skipped, *part.Slice(half), first_row + half);
  }
  nlohmann::json about = {{"sequence", frame.sequence},
                          {"tag", frame.tag},
                          {"rows", frame.rows},
                          {"skipped", skipped},
                          {"transfer_ns", frame.transfer_ns},
                          {"source_bytes", frame.source_bytes}};
  if (part.num_rows() != static_cast<std::int64_t>(frame.rows)) about["first_row"] = first_row;
  if (frame.stream->parts != 0) {
    about["part"] = frame.part;
    about["parts"] = frame.stream->parts;
  }
  payload.app_metadata = arrow::Buffer::FromString(about.dump());
  payloads_.push_back(std::move(payload));
  return arrow::Status::OK();
}

}  // namespace wherry::move
