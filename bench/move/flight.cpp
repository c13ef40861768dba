// SPDX-License-Identifier: Apache-2.0
// Compares with Arrow Flight: the same batch goes from the application's columns to a process on the other core.
#include <arrow/buffer.h>
#include <arrow/flight/client.h>
#include <arrow/record_batch.h>
#include <fmt/core.h>
#include <time.h>

#include "arrow_steps.hpp"
#include "base/clock.hpp"
#include "sources.hpp"

namespace wherry::bench {

namespace flight = arrow::flight;

namespace {

template <typename T>
T require_flight(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error("Flight: " + result.status().ToString());
  return std::move(result).ValueUnsafe();
}
void require_flight(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error("Flight: " + status.ToString());
}

/// CPU time of all threads of the process.
std::uint64_t process_cpu_ns() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}

struct Sample {
  double ns = 0, cpu_ns = 0;  ///< of one batch
};

/// One DoPut call; it lasts as long as this object. The columns are wrapped once, without a copy, so no array is built.
class Put {
 public:
  Put(flight::FlightClient& client, std::shared_ptr<arrow::RecordBatch> batch) : batch_(std::move(batch)) {
    auto call = require_flight(client.DoPut(flight::FlightDescriptor::Path({"bench"}), batch_->schema()));
    writer_ = std::move(call.writer);
    reader_ = std::move(call.reader);
  }
  ~Put() {
    (void)writer_->DoneWriting();
    (void)writer_->Close();
  }
  Put(const Put&) = delete;
  Put& operator=(const Put&) = delete;

  /// Waits until the server confirms that it has the batch.
  void send() {
    require_flight(writer_->WriteRecordBatch(*batch_));
    std::shared_ptr<arrow::Buffer> acknowledgment;
    require_flight(reader_->ReadMetadata(&acknowledgment));
    if (acknowledgment == nullptr) throw std::runtime_error("Flight: the server ended the stream");
  }

 private:
  std::shared_ptr<arrow::RecordBatch> batch_;
  std::unique_ptr<flight::FlightStreamWriter> writer_;
  std::unique_ptr<flight::FlightMetadataReader> reader_;
};

/// The agent is stopped meanwhile, so the Flight server has the core to itself.
Sample put_batches(Bench& bench, Put& put, int batches) {
  bench.children.stop_agent();
  put.send();
  const std::uint64_t cpu = process_cpu_ns();
  const std::uint64_t start = now_ns();
  for (int i = 0; i < batches; ++i) put.send();
  const std::uint64_t stop = now_ns();
  const std::uint64_t cpu_stop = process_cpu_ns();
  bench.children.resume_agent();
  return {static_cast<double>(stop - start) / batches, static_cast<double>(cpu_stop - cpu) / batches};
}

/// Host CPU: the calls post() and ready(), each by the clock around it. That is an upper bound of their CPU time, which
/// is too short for the CPU clocks. While it waits the application is free to compute; here it spins, uncounted.
Sample offload_batches(const Source& source, Stream& stream, int batches) {
  double cpu = 0;
  std::uint64_t start = 0;
  for (int i = -1; i < batches; ++i) {
    if (i == 0) start = now_ns();
    const std::uint64_t before = now_ns();
    Result<Ticket> posted = stream.post(source.columns());
    const std::uint64_t after = now_ns();
    const Ticket ticket = require(std::move(posted), "post");
    spin(ticket);
    const std::uint64_t asked = now_ns();
    if (!ticket.ready()) throw std::runtime_error("a ticket that was ready is not any more");
    const std::uint64_t answered = now_ns();
    if (i >= 0) cpu += static_cast<double>(after - before + answered - asked);
  }
  return {static_cast<double>(now_ns() - start) / batches, cpu / batches};
}

void run_case(Bench& bench, flight::FlightClient& client, int columns, std::size_t size) {
  bench.progress(fmt::format("flight: {} columns, {}", columns, size_text(size)));
  const auto names = random_names(columns);
  const Source source(bench, columns, size);
  Stream stream = bench.open("flight", Strategy::kIpcPageAligned, schema_of(names), size);
  Put put(client, wrap(source.values(), names));
  const int batches = size <= kMiB ? 20 : size <= 16 * kMiB ? 4 : 2;

  offload_batches(source, stream, 4);
  put_batches(bench, put, 4);
  std::vector<double> move_ns, flight_ns, move_cpu, flight_cpu, throughput, cpu;
  for (int round = 0; round < bench.rounds(); ++round) {
    check_interrupted();
    const Sample ours = offload_batches(source, stream, batches);
    const Sample theirs = put_batches(bench, put, batches);
    move_ns.push_back(ours.ns);
    flight_ns.push_back(theirs.ns);
    move_cpu.push_back(ours.cpu_ns);
    flight_cpu.push_back(theirs.cpu_ns);
    throughput.push_back(theirs.ns / ours.ns);
    cpu.push_back(theirs.cpu_ns / ours.cpu_ns);
  }
  require(bench.session.drain(std::chrono::seconds(10)), "drain");
  const Summary t = summarize(throughput), c = summarize(cpu);
  bench.report.row(columns == 1 ? "flight" : "flight_16_columns", {{"size", size},
                                                                   {"move_gbps", gbps(size, median(move_ns))},
                                                                   {"flight_gbps", gbps(size, median(flight_ns))},
                                                                   {"throughput_ratio", t.median},
                                                                   {"move_cpu_us", median(move_cpu) * 1e-3},
                                                                   {"flight_cpu_us", median(flight_cpu) * 1e-3},
                                                                   {"cpu_ratio", c.median}});
  if (columns != 1 || (size != kMiB && size != 64 * kMiB)) return;
  const bool small = size == kMiB;
  const std::string suffix = small ? "_1m" : "_64m";
  bench.report.bar("flight_throughput_ratio" + suffix, {t.median, t.min, t.max}, ">=", small ? 4 : 6);
  bench.report.bar("flight_host_cpu_ratio" + suffix, {c.median, c.min, c.max}, ">=", small ? 50 : 3000);
}

}  // namespace

void run_flight(Bench& bench) {
  const auto at = require_flight(flight::Location::ForGrpcTcp("127.0.0.1", bench.children.wait_for_flight()));
  const auto client = require_flight(flight::FlightClient::Connect(at));
  const auto sizes = bench.sizes({64 * kKiB, kMiB, 16 * kMiB, 64 * kMiB}, {kMiB, 64 * kMiB});
  for (const int columns : {1, 16}) {
    for (const std::size_t size : sizes) run_case(bench, *client, columns, size);
  }
  require_flight(client->Close());
}

}  // namespace wherry::bench
