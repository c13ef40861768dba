// SPDX-License-Identifier: Apache-2.0
// For tests: frames through a stock Arrow Flight client.
#pragma once

#include <arrow/api.h>
#include <arrow/flight/api.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace wherry::testing_support {

struct ReadFrame {
  std::uint64_t sequence = 0, tag = 0;
  std::shared_ptr<arrow::RecordBatch> batch;  ///< validated in full
};

/// Reads all frames of a stream. Empty if the stream does not exist.
inline std::vector<ReadFrame> read_frames(const std::string& uri, const std::string& token, const std::string& stream) {
  namespace flight = arrow::flight;
  const auto client = flight::FlightClient::Connect(flight::Location::Parse(uri).ValueOrDie()).ValueOrDie();
  flight::FlightCallOptions options;
  options.headers.emplace_back("authorization", "Bearer " + token);
  // gRPC's buffers may be unaligned, which UBSan reports.
  options.read_options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  auto reader = client->DoGet(options, flight::Ticket{stream});
  if (!reader.ok()) return {};
  std::vector<ReadFrame> frames;
  for (;;) {
    auto chunk = (*reader)->Next();
    if (!chunk.ok() || chunk->data == nullptr) break;
    EXPECT_TRUE(chunk->data->ValidateFull().ok());
    const auto about = nlohmann::json::parse(chunk->app_metadata->ToString());
    frames.push_back({about.at("sequence"), about.at("tag"), chunk->data});
  }
  return frames;
}

}  // namespace wherry::testing_support
