// SPDX-License-Identifier: Apache-2.0
// The baselines that run where the agent runs: raw gets, memcpy, conversion after the transfer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/arena.hpp"
#include "messages.hpp"
#include "session/service.hpp"

namespace wherry::bench {

/// Memory of BenchService, registered with the peer's transport. Touched once, then kept until a larger one is needed.
class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Status reserve(fabric::Context& context, std::size_t bytes);
  void release();
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] const fabric::Region& region() const noexcept { return region_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  fabric::Region region_;
};

/// One client, the benchmark itself. Every request runs to its end on the data thread, as move's transfers do.
class BenchService final : public session::Service {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return kBenchService; }
  Status start(session::ServiceHost& host) override { return arena_ = host.arena, ok_status(); }
  void on_session_end(session::Client& peer) override;
  Result<Bytes> on_request(session::Client& peer, std::string_view method, ByteView payload) override;

 private:
  Status attach(session::Client& peer, ByteView payload);
  Status run(session::Client& peer, const WorkRequest& request, Writer& out);
  Status run_on(session::Client& peer, const WorkRequest& request, Writer& out);
  Status get(session::Client& peer, const Segment& from, std::byte* to, const fabric::Region& local);
  Status get_uncached(session::Client& peer, const WorkRequest& request);
  Status get_columns(session::Client& peer, const WorkRequest& request, std::vector<std::span<const double>>& columns);
  void release();

  std::map<std::uint32_t, fabric::RemoteRegion> regions_;
  std::shared_ptr<Arena> arena_;
  /// Destinations, during one request. They use the same pool as move's frames, so over the rounds both sides get the
  /// same physical pages (some are up to 15 % faster than others).
  Extent to_[2];
  Buffer serialized_;  ///< finished Arrow IPC
  unsigned turn_ = 0;
};

}  // namespace wherry::bench
