// SPDX-License-Identifier: Apache-2.0
// The wire behind a few verbs: register, connect, send, get, put, progress. Through shared memory and RDMA it is UCX
// (only fabric.cpp includes <ucp/...>), over TCP stream_link.hpp: UCX's TCP listens and asks for no secret.
//
// Threads: a Context and all objects made from it belong to one thread at a time, also while a Region is destroyed.
// Threads that take turns need their own lock around every call.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_stream.hpp"
#include "base/bytes.hpp"
#include "base/fork.hpp"
#include "fabric/completion.hpp"
#include "fabric/registered_memory.hpp"
#include "wherry/status.hpp"
#include "wherry/transport.hpp"

struct ucp_context;
struct ucp_worker;
struct ucp_ep;
struct ucp_mem;
struct ucp_rkey;

namespace wherry::fabric {

class StreamLink;
class StreamWorker;
struct StreamOptions;

/// "1.22.0"
std::string ucx_version();

/// Registered local memory. Move-only. The destructor deregisters it (and frees it, if Wherry allocated it).
class Region {
 public:
  Region() noexcept = default;
  Region(Region&& other) noexcept { swap(other); }
  Region& operator=(Region&& other) noexcept {
    Region(std::move(other)).swap(*this);
    return *this;
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] ucp_mem* handle() const noexcept { return memory_; }
  explicit operator bool() const noexcept { return context_ != nullptr; }
  /// Appends the key with which a peer accesses this memory. Appends nothing on failure (no transport can make a key).
  Status pack_key(Bytes& out) const;

 private:
  friend class Context;
  void swap(Region& other) noexcept;
  std::shared_ptr<class Context> context_;
  ucp_mem* memory_ = nullptr;  ///< null: of a context without UCX
  bool owned_ = false;         ///< there, and it unmaps the memory
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A child of fork() does not destroy inherited UCX objects, because that would affect the parent.
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// kUnsupported, with the available transports, if this machine or this UCX does not have the transport.
  /// kAuto: rdma if there is a device, else tcp. Does not open a socket. UCX uses the transports of `transport`,
  /// regardless of $UCX_TLS.
  static Result<std::shared_ptr<Context>> create(Transport transport);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  /// Registers memory that the caller owns and keeps mapped until the Region is gone.
  Result<Region> register_memory(void* data, std::size_t bytes);
  /// Allocates page-aligned shared memory that a peer on the same machine can map. Touches every page.
  /// kResourceExhausted if less is free; then nothing is allocated, and the message says how much is free, and where.
  Result<Region> allocate(std::size_t bytes);

  [[nodiscard]] Transport transport() const noexcept { return transport_; }
  /// The memory of all live Regions. Only for Transport::kTcp.
  [[nodiscard]] const RegisteredMemory& registered() const noexcept { return registered_; }
  [[nodiscard]] ucp_context* handle() const noexcept { return context_; }
  [[nodiscard]] bool inherited() const noexcept { return mark_.inherited(); }
  /// Counts each call into UCX, for ThreadSanitizer, which does not see into UCX. If two threads call UCX at once
  /// without a common lock, their race on this counter is detected.
  void count_call() noexcept { ++calls_; }

 private:
  [[nodiscard]] Status has_room(std::size_t bytes) const;
  friend class Region;
  Context() = default;
  std::shared_ptr<const class SegmentDirectory> segments_;  ///< null: UCX's own place
  static Result<std::shared_ptr<Context>> create_ucx(Transport transport);
  RegisteredMemory registered_;
  ucp_context* context_ = nullptr;
  std::uint64_t calls_ = 0;
  ProcessMark mark_;
  Transport transport_ = Transport::kAuto;
};

/// Whether Transport::kRdma is available here. The first call asks UCX, which takes tens of milliseconds.
[[nodiscard]] bool rdma_is_here();

/// A message handler. `data` is valid only during the call.
using MessageHandler = void (*)(void* context, ByteView data);

class Worker {
 public:
  static Result<std::unique_ptr<Worker>> create(std::shared_ptr<Context> context);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// The address with which a peer connects to this worker. Contains a secret. Over TCP, empty before listen().
  [[nodiscard]] const Bytes& address() const noexcept { return address_; }
  /// Opens a listener for other workers (only TCP needs one).
  Status listen(const StreamOptions& options);
  /// Null except for Transport::kTcp.
  [[nodiscard]] StreamWorker* stream() const noexcept { return stream_.get(); }
  /// Returns the number of handled events. Handlers and completions run during the call.
  unsigned progress() noexcept;
  /// Sets the only handler for `id`, for the life of the worker.
  Status on_message(unsigned id, MessageHandler handler, void* context);
  [[nodiscard]] const std::shared_ptr<Context>& context() const noexcept { return context_; }
  [[nodiscard]] ucp_worker* handle() const noexcept { return worker_; }

  struct Handler {
    MessageHandler function;
    void* context;
  };

 private:
  Worker() = default;
  std::shared_ptr<Context> context_;
  std::vector<std::pair<unsigned, Handler>> stream_handlers_;
  std::unique_ptr<StreamWorker> stream_;
  ucp_worker* worker_ = nullptr;
  Bytes address_;
  std::vector<std::unique_ptr<Handler>> handlers_;
};

class Endpoint;

/// A peer's description of one of its regions: the address, and the key for access.
struct RemoteKey {
  std::uint64_t base = 0;
  std::uint64_t size = 0;
  Bytes key;
};

/// A peer's region, accessed through one endpoint. Move-only. Must not outlive the endpoint.
class RemoteRegion {
 public:
  RemoteRegion() noexcept = default;
  RemoteRegion(RemoteRegion&& other) noexcept
      : known_(std::exchange(other.known_, false)),
        key_(std::exchange(other.key_, nullptr)),
        base_(other.base_),
        size_(other.size_),
        mapped_(other.mapped_),
        mark_(other.mark_) {}
  RemoteRegion& operator=(RemoteRegion&& other) noexcept;
  RemoteRegion(const RemoteRegion&) = delete;
  RemoteRegion& operator=(const RemoteRegion&) = delete;
  ~RemoteRegion();

  [[nodiscard]] bool contains(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return address >= base_ && bytes <= size_ && address - base_ <= size_ - bytes;
  }
  /// Where the peer's `address` is mapped in this process. Null if the region cannot be mapped: then use get and put.
  [[nodiscard]] std::byte* mapped(std::uint64_t address) const noexcept {
    return mapped_ == nullptr ? nullptr : mapped_ + (address - base_);
  }
  [[nodiscard]] std::uint64_t base() const noexcept { return base_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] ucp_rkey* handle() const noexcept { return key_; }
  explicit operator bool() const noexcept { return known_; }

 private:
  friend class Endpoint;
  bool known_ = false;
  ucp_rkey* key_ = nullptr;
  std::uint64_t base_ = 0;
  std::uint64_t size_ = 0;
  std::byte* mapped_ = nullptr;
  ProcessMark mark_;
};

/// One connection of a worker to a peer's worker. Move-only. Closes without waiting for the peer. Operations in flight
/// then fail, and their Completions are updated before the destructor returns. Over TCP the endpoints of a worker to
/// one peer share their connection. If one of them closes while any operation is in flight, the others fail as well.
class Endpoint {
 public:
  /// `who`: names the peer in errors.
  static Result<Endpoint> connect(Worker& worker, ByteView peer_address, const std::string& who = "the peer");
  /// Makes an endpoint on an authenticated connection (TCP).
  static Endpoint over(Worker& worker, std::unique_ptr<ByteStream> stream);
  Endpoint() noexcept;
  Endpoint(Endpoint&& other) noexcept : Endpoint() { swap(other); }
  Endpoint& operator=(Endpoint&& other) noexcept;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  ~Endpoint();

  /// Sends `data` to the peer's handler `id`. The bytes must stay unchanged until `done` has no pending operation.
  /// Usually the call copies them before it returns, and does not change `done`.
  Status send(unsigned id, ByteView data, Completion& done);
  /// Gets remote bytes into registered local memory.
  Status get(std::byte* to, const Region& local, const RemoteRegion& from, std::uint64_t address, std::size_t bytes,
             Completion& done);
  /// Puts local bytes (which must stay unchanged until done) into remote memory.
  Status put(const std::byte* from, const RemoteRegion& to, std::uint64_t address, std::size_t bytes, Completion& done);
  /// Completes when all earlier puts are visible to the peer.
  Status flush(Completion& done);

  /// `key`: from the peer's Region::pack_key. It must come from an authenticated peer, because UCX trusts it. `base`
  /// and `size`: the peer's claims about its region. If the peer's memory can be mapped, the peer must be process
  /// `owner` on this machine, and the claims are checked. kInvalidArgument: there is less memory than claimed, or
  /// different memory.
  Result<RemoteRegion> unpack(ByteView key, std::uint64_t base, std::uint64_t size, pid_t owner) const;
  /// Transports in use, as UCX names them: "posix/memory cma/memory".
  [[nodiscard]] std::string transports() const;
  explicit operator bool() const noexcept { return ep_ != nullptr || link_ != nullptr; }
  /// Ok, or the reason why data no longer flow to or from the peer, if it is known.
  [[nodiscard]] Status status() const;
  [[nodiscard]] bool failed() const noexcept;
  /// Whether the peer's own code writes puts and answers gets when it makes progress. Then gets and puts need the
  /// peer's progress, puts arrive in order, and a failed get does not affect the others.
  [[nodiscard]] bool streams() const noexcept { return link_ != nullptr; }
  /// Announces that this side will send nothing more. Without this call, the peer treats the end of the connection as a
  /// failure. TCP only. False: the message has not left yet, so call again.
  bool say_bye();

 private:
  void swap(Endpoint& other) noexcept;
  /// Returns the endpoint for a UCX call, and counts that call.
  [[nodiscard]] ucp_ep* counted() const noexcept {
    worker_->context()->count_call();
    return ep_;
  }
  Worker* worker_ = nullptr;
  ucp_ep* ep_ = nullptr;
  std::unique_ptr<std::string> failure_;  ///< what UCX said of the peer
  std::shared_ptr<StreamLink> link_;
};

}  // namespace wherry::fabric
