// SPDX-License-Identifier: Apache-2.0
#include "move/service/flight_stream.hpp"

#include <arrow/io/memory.h>
#include <arrow/ipc/message.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/util/compression.h>

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

/// A follower detects only by polling that its client has gone, and keeps its thread until then. The interval grows
/// with the wait: so short-lived clients leave few threads behind, and a long wait costs little.
constexpr std::chrono::milliseconds kFirstSlice{1};
constexpr std::chrono::milliseconds kLastSlice{64};
constexpr const char* kResourceExhausted = "resource_exhausted";  ///< in an error, for which Flight has no code
constexpr std::chrono::seconds kPatience{10};                     ///< while other readers hold as much as readers may

arrow::ipc::IpcWriteOptions options_for(const FlightTicket& ticket, arrow::MemoryPool* pool) {
  using Compression = FlightTicket::Compression;
  auto options = arrow::ipc::IpcWriteOptions::Defaults();
  options.use_threads = false;  // the call's own thread compresses
  if (ticket.compression == Compression::kNone) return options;
  options.memory_pool = pool;
  // Every Arrow build with Flight has both codecs, so Create does not fail for them.
  const auto which = ticket.compression == Compression::kLz4 ? arrow::Compression::LZ4_FRAME : arrow::Compression::ZSTD;
  options.codec = arrow::util::Codec::Create(which).ValueOr(nullptr);
  return options;
}

}  // namespace

FrameStream::FrameStream(Catalogue& catalogue, const flight::ServerCallContext& context,
                         const std::atomic<bool>& stopping, FlightTicket ticket, const StreamStatus& status,
                         std::shared_ptr<arrow::Schema> schema, std::shared_ptr<const Query> query,
                         std::shared_ptr<arrow::MemoryPool> pool, std::uint64_t max_message_bytes)
    : catalogue_(catalogue),
      context_(context),
      stopping_(stopping),
      ticket_(std::move(ticket)),
      generation_(status.generation),
      end_(std::min(ticket_.until.value_or(std::numeric_limits<std::uint64_t>::max()),
                    ticket_.follow ? std::numeric_limits<std::uint64_t>::max() : status.next)),
      query_(std::move(query)),
      schema_(query_ == nullptr ? std::move(schema) : query_->schema()),
      pool_(std::move(pool)),
      mapper_(*schema_),
      options_(options_for(ticket_, pool_.get())),
      max_message_bytes_(max_message_bytes),
      at_(ticket_.from) {}

arrow::Result<flight::FlightPayload> FrameStream::GetSchemaPayload() {
  flight::FlightPayload payload;
  ARROW_RETURN_NOT_OK(arrow::ipc::GetSchemaPayload(*schema_, options_, mapper_, &payload.ipc_message));
  return payload;
}

arrow::Result<flight::FlightPayload> FrameStream::Next() {
  if (payloads_.empty()) {
    // gRPC asks for more only after it has written all earlier payloads.
    if (current_ != nullptr) {
      if (ticket_.columns && ticket_.columns->empty()) {
        // The columns were not sent, so do not mark the frame as read.
      } else if (ticket_.part) {
        catalogue_.mark_read(*current_, static_cast<std::uint32_t>(*ticket_.part));
      } else {
        catalogue_.mark_read(*current_);
      }
      current_.reset();
    }
    ARROW_RETURN_NOT_OK(fetch());
    if (payloads_.empty()) return flight::FlightPayload();
  }
  flight::FlightPayload payload = std::move(payloads_.front());
  payloads_.pop_front();
  return payload;
}

/// Fetches the next frame. At the end of the stream, payloads_ remains empty.
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
    at_ = next.frame->sequence + 1;
    if (ticket_.tag && next.frame->tag != *ticket_.tag) {
      slice = kFirstSlice;
      continue;
    }
    for (std::size_t part = 0; part < next.frame->frames(); ++part) {
      if (ticket_.part && part != *ticket_.part) continue;
      ARROW_RETURN_NOT_OK(prepare(frame_of(next.frame, part), next.skipped));
    }
    ++sent_;
    current_ = std::move(next.frame);
    break;
  }
  return arrow::Status::OK();
}

/// Adds the payloads of one frame. If a computation has no room, frees other frames.
arrow::Status FrameStream::prepare(const FramePtr& frame, std::uint64_t skipped) {
  const std::size_t before = payloads_.size();
  std::chrono::milliseconds slice = kFirstSlice;
  const auto began = std::chrono::steady_clock::now();
  for (;;) {
    const arrow::Status made = add_frame(frame, skipped);
    if (!made.IsOutOfMemory()) return made;
    payloads_.resize(before);
    if (std::chrono::steady_clock::now() - began > kPatience)
      return flight::MakeFlightError(flight::FlightStatusCode::TimedOut, made.message(), kResourceExhausted);
    if (stopping_.load())
      return flight::MakeFlightError(flight::FlightStatusCode::Unavailable, "the agent is shutting down");
    if (context_.is_cancelled()) return arrow::Status::Cancelled("the client went away");
    std::this_thread::sleep_for(slice);
    slice = std::min(2 * slice, kLastSlice);
  }
}

arrow::Status FrameStream::add_frame(const FramePtr& frame, std::uint64_t skipped) {
  if (frame->stream->pipeline != nullptr && query_ == nullptr && options_.codec == nullptr &&
      frame->layout.total_bytes <= max_message_bytes_)
    return add_stored(frame, skipped);
  auto batch = read_frame(frame, pool_.get());
  if (!batch && batch.status().code() == StatusCode::kResourceExhausted)
    return arrow::Status::OutOfMemory(batch.status().message());
  if (!batch) return arrow::Status::UnknownError(batch.status().message());
  if (query_ != nullptr) {
    ARROW_ASSIGN_OR_RAISE(*batch, query_->apply(*batch, pool_.get()));
  }
  ARROW_ASSIGN_OR_RAISE(const auto dictionaries, arrow::ipc::CollectDictionaries(**batch, mapper_));
  for (const auto& [id, values] : dictionaries) {
    flight::FlightPayload payload;
    ARROW_RETURN_NOT_OK(arrow::ipc::GetDictionaryPayload(id, values, options_, &payload.ipc_message));
    payloads_.push_back(std::move(payload));
  }
  if (frame->layout.total_bytes > max_message_bytes_) {
    ARROW_RETURN_NOT_OK((*batch)->ValidateFull());  // cutting follows offsets inside the columns
  }
  return add_batch(*frame, skipped, **batch, (*batch)->num_rows(), 0);
}

/// Adds the messages of a derived frame as they are stored, without decompression.
arrow::Status FrameStream::add_stored(const FramePtr& frame, std::uint64_t skipped) {
  arrow::io::BufferReader bytes(frame_buffer(frame));
  const auto messages = arrow::ipc::MessageReader::Open(&bytes);
  ARROW_ASSIGN_OR_RAISE(auto message, messages->ReadNextMessage());  // the schema, which the call sent before
  for (;;) {
    ARROW_ASSIGN_OR_RAISE(message, messages->ReadNextMessage());
    if (message == nullptr) return arrow::Status::OK();
    flight::FlightPayload payload;
    payload.ipc_message.type = message->type();
    payload.ipc_message.metadata = message->metadata();
    payload.ipc_message.body_buffers = {message->body()};
    payload.ipc_message.body_length = message->body_length();
    if (message->type() == arrow::ipc::MessageType::RECORD_BATCH)
      payload.app_metadata = arrow::Buffer::FromString(about(*frame, skipped).dump());
    payloads_.push_back(std::move(payload));
  }
}

nlohmann::json FrameStream::about(const Frame& frame, std::uint64_t skipped) const {
  nlohmann::json about = {{"sequence", frame.sequence},
                          {"tag", frame.tag},
                          {"rows", frame.rows},
                          {"skipped", skipped},
                          {"transfer_ns", frame.transfer_ns},
                          {"source_bytes", frame.source_bytes},
                          {"generation", generation_}};
  if (frame.stream->parts != 0) {
    about["part"] = frame.part;
    about["parts"] = frame.stream->parts;
  }
  return about;
}

/// Splits the batch in halves until each piece fits into a message.
arrow::Status FrameStream::add_batch(const Frame& frame, std::uint64_t skipped, const arrow::RecordBatch& part,
                                     std::int64_t rows, std::int64_t first_row) {
  flight::FlightPayload payload;
  ARROW_RETURN_NOT_OK(arrow::ipc::GetRecordBatchPayload(part, options_, &payload.ipc_message));
  if (payload.ipc_message.body_length > static_cast<std::int64_t>(max_message_bytes_) && part.num_rows() > 1) {
    std::int64_t half = part.num_rows() / 2;
    if (half > 64) half -= half % 64;  // so that bitmaps are cut between bytes and need not be shifted
    ARROW_RETURN_NOT_OK(add_batch(frame, skipped, *part.Slice(0, half), rows, first_row));
    return add_batch(frame, skipped, *part.Slice(half), rows, first_row + half);
  }
  nlohmann::json metadata = about(frame, skipped);
  if (part.num_rows() != rows) metadata["first_row"] = first_row;
  payload.app_metadata = arrow::Buffer::FromString(metadata.dump());
  payloads_.push_back(std::move(payload));
  return arrow::Status::OK();
}

}  // namespace wherry::move
