// SPDX-License-Identifier: Apache-2.0
// Sends, in any order, all messages that a client with a session can send to the move service: announced and dropped
// regions, offloads that match their stream or not, and corrupted messages. Gets fail at once or later, or clients
// reconnect. Each message that names a ticket must get one answer. Writes must stay inside the extent of their frame.
// All memory must be freed.
//
// A fake fabric replaces fabric.cpp, because UCX's handling of its own blobs is not under test here.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <cstring>
#include <deque>

#include "base/log.hpp"
#include "move/fuzz_offload.hpp"
#include "move/service/offload_engine.hpp"

namespace {

using wherry::Arena;

void require(bool holds) {
  if (!holds) std::abort();
}

constexpr std::uint64_t kBase = 4096;          // of the regions that a client announces, unless they are bent
constexpr std::size_t kRegionBytes = 1 << 16;  // and their size
std::byte client_memory[kRegionBytes];         // what the agent maps

std::shared_ptr<Arena>& arena() {
  static std::shared_ptr<Arena> one = *Arena::create(1 << 20);
  return one;
}

/// Acts as a get whose bytes depend on their source address.
void bring(std::byte* to, std::uint64_t from, std::size_t bytes) {
  const std::span<std::byte> memory = arena()->memory();
  require(to >= memory.data() && bytes <= memory.size() && to + bytes <= memory.data() + memory.size());
  std::memset(to, static_cast<int>(from >> 4 & 1), bytes);
}

}  // namespace

namespace wherry::fabric {

Region::~Region() = default;
RemoteRegion::~RemoteRegion() = default;
RemoteRegion& RemoteRegion::operator=(RemoteRegion&& other) noexcept {
  known_ = std::exchange(other.known_, false);
  key_ = std::exchange(other.key_, nullptr);
  base_ = other.base_;
  size_ = other.size_;
  mapped_ = other.mapped_;
  return *this;
}
Endpoint::Endpoint() noexcept = default;
Endpoint::~Endpoint() = default;
Endpoint& Endpoint::operator=(Endpoint&& other) noexcept {
  ep_ = std::exchange(other.ep_, nullptr);
  return *this;
}
unsigned Worker::progress() noexcept { return 0; }

/// The first byte of a key selects the outcome.
Result<RemoteRegion> Endpoint::unpack(ByteView key, std::uint64_t base, std::uint64_t size, pid_t /*owner*/) const {
  if (key.empty() || key[0] == std::byte{0xff}) return Status(StatusCode::kProtocol, "no key");
  RemoteRegion region;
  region.known_ = true;
  region.key_ = reinterpret_cast<ucp_rkey*>(client_memory);
  region.base_ = base;
  region.size_ = size;
  if (key[0] == std::byte{1} && size <= kRegionBytes) region.mapped_ = client_memory;
  return region;
}

Status Endpoint::get(std::byte* to, const Region& /*local*/, const RemoteRegion& from, std::uint64_t address,
                     std::size_t bytes, Completion& done) {
  require(from.contains(address, bytes));
  if (address % 64 == 63) return {StatusCode::kSourceFault, "at once"};
  done.op_started();
  if (address % 64 != 62) bring(to, address, bytes);
  done.op_done(address % 64 == 62 ? "later" : nullptr);
  return ok_status();
}

Status ProcessReader::read() {
  require(pid_ == 1);  // the client's
  const std::size_t count = std::exchange(count_, 0);
  for (failed_ = 0; failed_ < count; ++failed_) {
    const auto from = reinterpret_cast<std::uint64_t>(remote_[failed_].iov_base);
    if (from % 64 == 61) return {StatusCode::kSourceFault, "not readable"};
    bring(static_cast<std::byte*>(local_[failed_].iov_base), from, local_[failed_].iov_len);
  }
  return ok_status();
}

}  // namespace wherry::fabric

namespace {

using namespace wherry;        // NOLINT(google-build-using-namespace)
using namespace wherry::move;  // NOLINT(google-build-using-namespace)

class FakePeer final : public session::Client {
 public:
  FakePeer(std::uint64_t id, bool local, bool reconnects) : id_(id), local_(local), reconnects_(reconnects) {}
  [[nodiscard]] std::uint64_t id() const noexcept override { return id_; }
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::uint32_t pid() const noexcept override { return 1; }
  [[nodiscard]] fabric::Endpoint& endpoint() noexcept override { return endpoint_; }
  [[nodiscard]] fabric::Worker& worker() noexcept override { std::abort(); }  // for gets in flight; none ever is
  [[nodiscard]] const fabric::Region& arena_region() const noexcept override { return region_; }
  [[nodiscard]] fabric::ProcessReader* reader() noexcept override { return local_ ? &reader_ : nullptr; }
  [[nodiscard]] std::uint32_t max_tickets() const noexcept override { return 64; }
  [[nodiscard]] std::uint32_t epoch() const noexcept override { return epoch_; }
  void fail(Status) noexcept override {}
  bool reconnect() override {
    ++epoch_;
    return reconnects_;
  }
  void complete(std::uint64_t /*ticket*/, StatusCode /*code*/,
                const session::CompletionRecord& /*fields*/) noexcept override {
    ++completed;
    // A put may make progress in UCX, which may deliver the next message.
    if (deliver_inside != nullptr) (*deliver_inside)();
  }

  std::size_t completed = 0;
  std::function<void()>* deliver_inside = nullptr;

 private:
  std::uint64_t id_;
  bool local_, reconnects_;
  std::string name_ = "fuzz";
  fabric::Endpoint endpoint_;
  fabric::Region region_;
  fabric::ProcessReader reader_{1};
  std::uint32_t epoch_ = 1;
};

const std::vector<Schema>& schemas() {
  static const std::vector<Schema> all{
      {field("x", "g")},
      {field("s", "u"), field("b", "b")},
      {list("l", field("f", "f")), struct_("t", {field("i", "i"), fixed_size_list("w", 3, field("c", "c"))})},
      {dictionary("d", "c", field("v", "u"))},
      {}};
  return all;
}

struct OpenStream {
  std::string name;
  std::uint32_t id = 0;
  Plan plan;
  bool raw = false;
  FlatOffload first;  ///< the latest message that was the first half of a frame
};

Bytes make_message(FuzzedDataProvider& fuzz, std::vector<OpenStream>& streams, std::uint64_t ticket) {
  OpenStream& stream = streams[fuzz.ConsumeIntegralInRange<std::size_t>(0, streams.size() - 1)];
  OffloadHeader header;
  header.ticket = ticket;
  header.rows = fuzz.ConsumeIntegralInRange<std::uint64_t>(0, 40);
  header.stream = bend(fuzz, stream.id, 250);
  header.deadline_ns = fuzz.ConsumeIntegral<std::uint8_t>() < 250 ? 0 : 1;
  FlatOffload flat;
  if (stream.raw) {
    for (int i = fuzz.ConsumeIntegralInRange(0, 5); i > 0; --i)
      flat.buffers.push_back({kBase, fuzz.ConsumeIntegralInRange<std::uint64_t>(0, 5000), 0, 0, 0});
  } else {
    make_offload(fuzz, stream.plan, header.rows, flat);
  }
  if (fuzz.ConsumeIntegral<std::uint8_t>() > 180) {
    header.binding = fuzz.ConsumeIntegralInRange<std::uint32_t>(0, 3);
    if (fuzz.ConsumeBool()) flat.clear();
  }
  for (BufferRef& buffer : flat.buffers) {
    buffer.region = fuzz.ConsumeIntegralInRange<std::uint32_t>(0, 2);
    if (buffer.address == kBase) buffer.address += fuzz.ConsumeIntegral<std::uint8_t>();
  }
  std::vector<std::uint32_t> dropped;
  std::vector<NewRegion> regions;
  std::array<std::byte, 3> key{};
  if (fuzz.ConsumeIntegral<std::uint8_t>() > 200) dropped.push_back(fuzz.ConsumeIntegralInRange<std::uint32_t>(0, 3));
  if (ticket <= 3 || fuzz.ConsumeIntegral<std::uint8_t>() > 200) {
    const auto id =
        ticket <= 3 ? static_cast<std::uint32_t>(ticket - 1) : fuzz.ConsumeIntegralInRange<std::uint32_t>(0, 3);
    key[0] = static_cast<std::byte>(fuzz.ConsumeIntegral<std::uint8_t>());
    regions.push_back({id, bend(fuzz, kBase, 250), bend<std::uint64_t>(fuzz, kRegionBytes, 250),
                       ByteView(key).first(fuzz.ConsumeIntegral<std::uint8_t>() < 250 ? 3 : 0)});
  }
  if (fuzz.ConsumeIntegral<std::uint8_t>() > 200) {
    header.half = static_cast<Half>(fuzz.ConsumeIntegralInRange<std::uint32_t>(1, 3));
    if (fuzz.ConsumeIntegral<std::uint8_t>() < 240) header.binding = 0;  // both are refused
    if (header.half == Half::kFirst) stream.first = flat;
    if (header.half == Half::kRest && fuzz.ConsumeBool()) {
      flat = stream.first;
      for (BufferRef& buffer : flat.buffers) buffer.region = buffer.region == 0 ? 1 : 0;
    }
  }
  header.node_count = static_cast<std::uint16_t>(flat.nodes.size());
  header.buffer_count = static_cast<std::uint32_t>(flat.buffers.size());
  header.dropped_count = static_cast<std::uint32_t>(dropped.size());
  header.region_count = static_cast<std::uint32_t>(regions.size());
  Bytes message;
  build_offload(header, flat, dropped, regions, message);
  if (fuzz.ConsumeIntegral<std::uint8_t>() > 230) {
    for (int i = fuzz.ConsumeIntegralInRange(0, 4); i > 0; --i)
      message[fuzz.ConsumeIntegralInRange<std::size_t>(0, message.size() - 1)] =
          static_cast<std::byte>(fuzz.ConsumeIntegral<std::uint8_t>());
    message.resize(fuzz.ConsumeIntegralInRange<std::size_t>(message.size() - std::min<std::size_t>(message.size(), 16),
                                                            message.size()));
  }
  return message;
}

/// Acts as the reader for which a lossless stream waits.
void read_everything(Catalogue& catalogue, const std::vector<OpenStream>& streams) {
  for (const OpenStream& stream : streams) {
    for (std::uint64_t sequence = 0;;) {
      const Catalogue::Next next = catalogue.next(stream.name, sequence, std::chrono::milliseconds(0));
      if (next.what != Catalogue::Next::What::kFrame) break;
      require(next.frame->ipc().size() == next.frame->layout.total_bytes);
      catalogue.mark_read(*next.frame);
      sequence = next.frame->sequence + 1;
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool quiet = init_log("off", "").ok();
  require(quiet);
  FuzzedDataProvider fuzz(data, size);
  {
    Catalogue catalogue;
    MoveOptions options;
    options.transfer_unit = 1024;
    options.window = 4096;
    options.streaming_copy_from = 2048;
    options.max_offloads_per_session = 32;
    options.max_queued_bytes_per_session = 16384;
    options.max_region_bytes_per_session = 1024;
    OffloadEngine service(options, arena(), catalogue);
    FakePeer peer(7, fuzz.ConsumeBool(), fuzz.ConsumeBool());
    service.on_session_start(peer);

    std::vector<OpenStream> streams;
    for (std::size_t i = 0; i < schemas().size(); ++i) {
      OpenRequest request;
      request.schema = schemas()[i];
      request.options.name = "s" + std::to_string(i);
      request.options.strategy = request.schema.empty()
                                     ? Strategy::kRaw
                                     : fuzz.PickValueInArray({Strategy::kArrays, Strategy::kRecordBatch, Strategy::kIpc,
                                                              Strategy::kIpcPageAligned, Strategy::kCAbi});
      request.options.retention.frames = fuzz.ConsumeIntegralInRange<std::uint64_t>(0, 3);
      if (fuzz.ConsumeBool()) request.options.retention.when_full = Retention::WhenFull::kWait;
      const auto answer = service.on_request(peer, "open", encode(request));
      require(answer.ok());
      Reader in(*answer);
      streams.push_back({request.options.name, in.get<std::uint32_t>(), {}, request.schema.empty()});
      if (!request.schema.empty()) streams.back().plan = *make_plan(request.schema);
    }

    std::deque<Bytes> inbox;
    std::size_t to_answer = 0;
    std::size_t delivered = 0;
    std::function<void()> deliver = [&] {
      if (inbox.empty()) return;
      const Bytes message = std::move(inbox.front());
      inbox.pop_front();
      std::vector<std::uint64_t> words(message.size() / 8 + 2);
      auto* const bytes = reinterpret_cast<std::byte*>(words.data());
      std::memcpy(bytes, message.data(), message.size());
      OffloadHeader header;
      if (message.size() >= sizeof header) {
        std::memcpy(&header, bytes, sizeof header);
        to_answer += header.ticket != 0 ? 1 : 0;
      }
      const std::size_t shift = ++delivered % 2;  // not aligned, every other time
      std::memmove(bytes + shift, message.data(), message.size());
      service.on_message(peer, {bytes + shift, message.size()});
    };
    if (fuzz.ConsumeBool()) peer.deliver_inside = &deliver;

    for (std::uint64_t ticket = 1; ticket <= 48 && fuzz.remaining_bytes() > 0; ++ticket) {
      inbox.push_back(make_message(fuzz, streams, ticket));
      const auto what = fuzz.ConsumeIntegral<std::uint8_t>();
      if (what % 4 != 0) deliver();
      if (what % 8 == 1) service.poll();
      if (what % 16 == 2) read_everything(catalogue, streams);
      if (what == 255) {
        Writer close;
        close.put(streams[ticket % streams.size()].id);
        close.put(static_cast<std::uint64_t>(fuzz.ConsumeIntegralInRange(0, 3)));
        (void)service.on_request(peer, "close", close.bytes());
      }
    }
    while (!inbox.empty()) deliver();
    for (int i = 0; i < 5000 && !service.drained(); ++i) {
      if (i == 1000) service.start_draining();  // ends halves of frames whose other half never comes
      service.poll();
      if (i % 8 == 7) read_everything(catalogue, streams);
    }
    require(service.drained());
    require(peer.completed == to_answer);
    service.on_session_end(peer);
  }
  require(arena()->in_use() == 0);
  return 0;
}
