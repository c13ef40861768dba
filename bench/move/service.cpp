// SPDX-License-Identifier: Apache-2.0
#include "service.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "arrow_steps.hpp"
#include "base/clock.hpp"

namespace wherry::bench {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMallocHeader = 16;  // how far into its page glibc's malloc starts a large block

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

Status no_memory(std::size_t bytes) {
  return {StatusCode::kResourceExhausted, "no memory for " + std::to_string(bytes) + " bytes"};
}

struct Free {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

}  // namespace

// ---------------------------------------------------------------- Buffer

Buffer::~Buffer() { release(); }

void Buffer::release() {
  region_ = {};
  std::free(data_);
  data_ = nullptr;
  size_ = 0;
}

Status Buffer::reserve(fabric::Context& context, std::size_t bytes) {
  if (bytes <= size_) return ok_status();
  release();
  void* memory = nullptr;
  if (posix_memalign(&memory, kPage, whole_pages(bytes)) != 0) return no_memory(bytes);
  data_ = static_cast<std::byte*>(memory);
  size_ = whole_pages(bytes);
  std::memset(data_, 0, size_);
  auto region = context.register_memory(data_, size_);
  if (!region) return region.status();
  region_ = *std::move(region);
  return ok_status();
}

// ---------------------------------------------------------------- BenchService

void BenchService::release() { serialized_.release(); }

void BenchService::on_session_end(session::Client& /*peer*/) {
  regions_.clear();
  release();
}

Result<Bytes> BenchService::on_request(session::Client& peer, std::string_view method, ByteView payload) {
  if (method == "attach") {
    if (Status s = attach(peer, payload); !s) return s;
    return Bytes();
  }
  if (method == "detach") {
    Reader in(payload);
    regions_.erase(in.get<std::uint32_t>());
    return Bytes();
  }
  if (method == "release") {
    release();
    return Bytes();
  }
  WorkRequest request;
  if (method != "run" || !decode(payload, request)) return Status(StatusCode::kProtocol, "no request of bench_move");
  Writer out;
  if (Status s = run(peer, request, out); !s) return s;
  return std::move(out).take();
}

Status BenchService::attach(session::Client& peer, ByteView payload) {
  Reader in(payload);
  const auto id = in.get<std::uint32_t>();
  const auto base = in.get<std::uint64_t>();
  const auto size = in.get<std::uint64_t>();
  auto region = peer.endpoint().unpack(in.get_bytes(), base, size, static_cast<pid_t>(peer.pid()));
  if (!region) return region.status();
  regions_[id] = *std::move(region);
  return ok_status();
}

/// Depth 1: one get, progress until it is done.
Status BenchService::get(session::Client& peer, const Segment& from, std::byte* to, const fabric::Region& local) {
  const auto it = regions_.find(from.region);
  if (it == regions_.end()) return {StatusCode::kNotFound, "no such region"};
  fabric::Completion done;
  if (Status s = peer.endpoint().get(to, local, it->second, from.address, from.bytes, done); !s) return s;
  while (done.pending() != 0) peer.worker().progress();
  if (done.error() != nullptr) return {StatusCode::kSourceFault, done.error()};
  return ok_status();
}

Status BenchService::get_uncached(session::Client& peer, const WorkRequest& request) {
  const Segment& from = request.segments.front();
  void* memory = nullptr;
  if (request.alignment == Alignment::kMalloc) {
    memory = std::malloc(from.bytes);
  } else if (posix_memalign(&memory, kPage, from.bytes) != 0) {
    memory = nullptr;
  }
  const std::unique_ptr<void, Free> owner(memory);
  if (memory == nullptr) return no_memory(from.bytes);
  auto local = peer.worker().context()->register_memory(memory, from.bytes);
  if (!local) return local.status();
  return get(peer, from, static_cast<std::byte*>(memory), *local);
}

/// Every column starts on a page, as in the buffers that move prepares. All gets are posted before the first is
/// awaited.
Status BenchService::get_columns(session::Client& peer, const WorkRequest& request,
                                 std::vector<std::span<const double>>& columns) {
  std::byte* const to = to_[turn_++ % 2].bytes().data();
  std::size_t at = 0;
  fabric::Completion done;
  columns.clear();
  Status failed;
  for (const Segment& s : request.segments) {
    const auto it = regions_.find(s.region);
    if (it == regions_.end()) failed = {StatusCode::kNotFound, "no such region"};
    if (!failed) break;
    failed = peer.endpoint().get(to + at, peer.arena_region(), it->second, s.address, s.bytes, done);
    columns.emplace_back(reinterpret_cast<const double*>(to + at), s.bytes / sizeof(double));
    at += whole_pages(s.bytes);
  }
  while (done.pending() != 0) peer.worker().progress();
  if (failed && done.error() != nullptr) return {StatusCode::kSourceFault, done.error()};
  return failed;
}

Status BenchService::run(session::Client& peer, const WorkRequest& request, Writer& out) {
  Status s = run_on(peer, request, out);
  for (Extent& extent : to_) extent = Extent();
  return s;
}

Status BenchService::run_on(session::Client& peer, const WorkRequest& request, Writer& out) {
  fabric::Context& context = *peer.worker().context();
  std::size_t total = 0;
  for (const Segment& s : request.segments) total += whole_pages(s.bytes);
  if (request.work != Work::kGetUncached) {
    for (Extent& extent : to_) {
      auto memory = arena_->try_allocate(total + kPage);
      if (!memory) return memory.status();
      extent = *std::move(memory);
      extent.set_stamp(0);
    }
  }
  const bool converts = request.work == Work::kSmartNic || request.work == Work::kCAbi;
  if (converts) {
    if (Status s = serialized_.reserve(context, ipc_bound(total, request.names.size())); !s) return s;
  }
  const Segment& first = request.segments.front();
  const auto it = regions_.find(first.region);
  const std::byte* mapped = it == regions_.end() ? nullptr : it->second.mapped(first.address);
  if (request.work == Work::kCopy && mapped == nullptr) return {StatusCode::kUnsupported, "the source is not mapped"};
  const std::size_t shift = request.alignment == Alignment::kMalloc ? kMallocHeader : 0;

  std::vector<std::span<const double>> columns;
  columns.reserve(request.segments.size());
  for (std::uint32_t i = 0; i < request.repeat; ++i) {
    Status s;
    const std::uint64_t start = now_ns();
    switch (request.work) {
      case Work::kGet: {
        s = get(peer, first, to_[turn_++ % 2].bytes().data() + shift, peer.arena_region());
        break;
      }
      case Work::kGetUncached:
        s = get_uncached(peer, request);
        break;
      case Work::kCopy:
        std::memcpy(to_[turn_++ % 2].bytes().data() + shift, mapped, first.bytes);
        break;
      case Work::kSmartNic:
      case Work::kCAbi:
        s = get_columns(peer, request, columns);
        if (s) {
          const auto batch =
              request.work == Work::kSmartNic ? build(columns, request.names) : import_c_abi(columns, request.names);
          serialize_into(*batch, {serialized_.data(), ipc_bound(total, request.names.size())});
        }
        break;
    }
    const std::uint64_t stop = now_ns();
    if (!s) return s;
    out.put(stop - start);
  }
  return ok_status();
}

}  // namespace wherry::bench
