// SPDX-License-Identifier: Apache-2.0
// Receives offload messages, gets and places the columns, and publishes frames in the catalogue. One thread (the
// agent's data thread) makes all calls.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/copy.hpp"
#include "fabric/arena.hpp"
#include "move/message.hpp"
#include "move/service/catalogue.hpp"
#include "move/service/inbox.hpp"
#include "session/client.hpp"
#include "session/metrics.hpp"

namespace wherry::move {

struct MoveOptions {
  /// Bytes of one get. Larger buffers are split, so that transfers of several clients alternate and a NIC can pipeline.
  std::size_t transfer_unit = std::size_t{4} << 20;
  /// Bytes of gets in flight per offload.
  std::size_t window = std::size_t{16} << 20;
  /// If the source is mapped, offloads from this size on use the faster of two kinds of copy, found by trials. Smaller
  /// offloads use memcpy.
  std::size_t streaming_copy_from = std::size_t{8} << 20;
  /// Streams' files must lie below this directory. Empty: any directory that the agent's user may write to.
  std::string sink_root;
  /// If true, files need a sink_root: clients may belong to other users, and must not write to every directory that the
  /// agent's user may write to.
  bool sink_needs_root = false;
  /// Limits of one client: offloads that are queued or in flight, and bytes of their buffer lists (one offload may
  /// always be queued). The lists of its bound steps may take the same number of bytes in addition.
  std::uint32_t max_offloads_per_session = 4096;
  std::uint64_t max_queued_bytes_per_session = std::uint64_t{64} << 20;
  /// Bytes of one client's messages that have arrived and wait for the engine. One message may always wait.
  std::uint64_t max_arrived_bytes_per_session = std::uint64_t{64} << 20;
  /// Bytes of one client's table of regions: room for about 300,000 regions.
  std::uint64_t max_region_bytes_per_session = std::uint64_t{64} << 20;
};

class Dataset;

class OffloadEngine {
 public:
  OffloadEngine(MoveOptions options, std::shared_ptr<Arena> arena, Catalogue& catalogue);
  ~OffloadEngine();
  OffloadEngine(const OffloadEngine&) = delete;
  OffloadEngine& operator=(const OffloadEngine&) = delete;

  // Like the functions of session::Service.
  void on_session_start(session::Client& handle);
  void on_session_end(session::Client& handle);
  Result<Bytes> on_request(session::Client& handle, std::string_view method, ByteView payload);
  void on_message(session::Client& handle, ByteView message);
  bool poll();
  [[nodiscard]] bool moving() const;
  void start_draining() { draining_ = true; }
  bool drained();
  void metrics(session::MetricsWriter& out) const;

 private:
  struct Offload;
  struct StreamState;
  struct ClientState;

  Result<Bytes> open_stream(ClientState& client, ByteView payload);
  const StreamState* opened_before(ClientState& client, const StreamOptions& options, ByteView opened_with);
  Result<std::shared_ptr<const StreamInfo>> make_info(const OpenRequest& request);
  Status open_new(ClientState& client, std::unique_ptr<StreamState> made, OpenRequest request);
  Status open_part(ClientState& client, std::unique_ptr<StreamState> made);
  static std::string owner(const ClientState& client);
  bool left_behind(Dataset& dataset, const OpenRequest& request);
  bool end_idle_dataset();
  void end_stream(StreamState& stream, bool gone);
  void end_dataset(Dataset& dataset);
  void note_dataset(const Dataset& dataset);
  [[nodiscard]] bool may_run_ahead(const StreamState& stream, const Offload& offload) const;
  void prepare_memory(const StreamInfo& info, std::uint64_t announced);
  bool warm_up();
  Result<Bytes> close_stream(ClientState& client, ByteView payload);
  void retire(StreamState& stream);
  const fabric::RemoteRegion* region_of(ClientState& client, std::uint32_t id);

  // The path of an offload: admit.cpp, start.cpp, issue.cpp, halves.cpp, recover.cpp,
  // settle.cpp.
  bool take_messages();
  void take(ClientState& client, ByteView message);
  void activate(StreamState& stream);
  Status learn_regions(ClientState& client);
  Status use_binding(ClientState& client, const StreamState& stream);
  static void forget_binding(ClientState& client, std::uint32_t id);
  static void forget_bindings(ClientState& client, const StreamState& stream);
  static void free_regions(ClientState& client);
  Status admit(ClientState& client, StreamState& stream, Offload& offload);
  bool try_start(StreamState& stream, Offload& offload);
  bool must_wait(Offload& offload);
  void take_rest(ClientState& client, StreamState& stream);
  static void finish_first_half(StreamState& stream, Offload& offload);
  bool go_on(StreamState& stream, Offload& offload);
  bool advance(StreamState& stream, Offload& offload);
  Status issue(ClientState& client, Offload& offload, std::size_t bytes, bool one_get);
  Status read_pieces(fabric::ProcessReader& reader, Offload& offload);
  static void stop_moving(StreamState& stream, Offload& offload);
  void fail(StreamState& stream, Offload& offload, const Status& why, std::uint64_t detail);
  void note_failure(StreamState& stream, const Offload& offload, const Status& why);
  void lose(ClientState& client);
  static void tell_failures(ClientState& client);
  void place(StreamState& stream, Offload& offload);
  void settle(StreamState& stream);
  void recover(ClientState& client);
  bool poll_stream(StreamState& stream);

  MoveOptions options_;
  std::shared_ptr<Arena> arena_;
  Catalogue& catalogue_;
  std::unordered_map<std::uint64_t, std::unique_ptr<ClientState>> clients_;
  std::unordered_map<std::string, std::shared_ptr<Dataset>> datasets_;  ///< that have not ended
  std::vector<StreamState*> active_;                                    ///< streams whose queue is not empty
  std::vector<std::unique_ptr<Offload>> spare_;  ///< reused, so that a warm offload allocates little
  std::vector<std::unique_ptr<Offload>> lost_;   ///< of ended sessions, with gets that never reported
  std::deque<Extent> cold_;                      ///< announced, and not resident yet; warm_up() works them off
  std::size_t warm_bytes_ = 0;                   ///< of the first of them
  std::uint32_t polls_ = 0;
  std::uint64_t tell_at_ = 0;  ///< now_ns() at which failures are logged; 0: there are none
  Inbox<ClientState> inbox_;
  OffloadView view_;  ///< of the message at hand; reused
  CopyChooser copier_;
  std::vector<std::uint32_t> piece_buffers_;  ///< reused by issue(): the buffer of each piece that it collected
  std::uint32_t next_stream_ = 1;
  bool draining_ = false;

  struct Counters {
    std::uint64_t offloads = 0, failed = 0, bytes = 0, refused = 0, busy = 0, gets = 0, mapped_copies = 0,
                  transfer_ns = 0, steps = 0,
                  ended_discarded = 0;  ///< of steps: complete; given up by datasets that ended
  } counters_;
  session::TimeHistogram transfers_;  ///< from first get to last byte placed
};

}  // namespace wherry::move
