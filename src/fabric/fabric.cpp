// SPDX-License-Identifier: Apache-2.0
#include "fabric/fabric.hpp"

#include <fmt/core.h>
#include <sys/mman.h>
#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/clock.hpp"
#include "base/free_memory.hpp"
#include "base/guarded.hpp"
#include "base/try.hpp"
#include "fabric/segment_directory.hpp"
#include "fabric/shared_memory.hpp"
#include "fabric/stream_worker.hpp"

namespace wherry::fabric {
namespace {

/// The UCX transports for a Wherry transport. They do not open a listening socket. `self` connects a process to itself
/// (tests).
const char* ucx_transports(Transport transport) {
  switch (transport) {
    case Transport::kShm:
      return "posix,cma,self";
    case Transport::kRdma:
      return "rc,dc,ud,self";
    case Transport::kAuto:
    case Transport::kTcp:
      break;
  }
  return "self";
}

/// Whether the context's resources include a UCX transport that this Wherry transport needs.
bool has_resource(ucp_context_h context, Transport transport) {
  char* text = nullptr;
  std::size_t size = 0;
  FILE* stream = open_memstream(&text, &size);
  if (stream == nullptr) return false;
  ucp_context_print_info(context, stream);
  std::fclose(stream);
  const std::string info(text, size);
  std::free(text);
  // Lines read "#   resource 0  :  md 0  dev 0  flags -- posix/memory".
  const auto any = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (info.find(fmt::format(" {}", name)) != std::string::npos) return true;
    }
    return false;
  };
  switch (transport) {
    case Transport::kShm:
      return any({"cma/"});
    case Transport::kRdma:
      return any({"rc_", "dc_", "ud_"});
    case Transport::kAuto:
    case Transport::kTcp:
      break;
  }
  return false;
}

Status failed(const char* what, ucs_status_t status) {
  return {StatusCode::kInternal, fmt::format("{}: {}", what, ucs_status_string(status))};
}

void on_done(void* request, ucs_status_t status, void* user) {
  static_cast<Completion*>(user)->op_done(status == UCS_OK ? nullptr : ucs_status_string(status));
  ucp_request_free(request);
}

ucp_request_param_t params_for(Completion& done) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = on_done;
  params.user_data = &done;
  return params;
}

/// Converts the return value of a UCX operation to a Status. Counts the operation in `done` if it is still in progress.
Status started(const char* what, ucs_status_ptr_t result, Completion& done) {
  if (result == nullptr) return ok_status();
  if (UCS_PTR_IS_ERR(result)) return failed(what, UCS_PTR_STATUS(result));
  done.op_started();
  return ok_status();
}

ucs_status_t on_active_message(void* arg, const void* /*header*/, std::size_t /*header_length*/, void* data,
                               std::size_t length, const ucp_am_recv_param_t* param) {
  // Wherry's senders force the eager protocol, so a rendezvous descriptor comes from another sender.
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  const auto* handler = static_cast<const Worker::Handler*>(arg);
  handler->function(handler->context, ByteView(static_cast<const std::byte*>(data), length));
  return UCS_OK;
}

/// UCX's shared-memory transports have no peer failure handler and cannot be selected with one.
bool notices_failures(Transport transport) { return transport == Transport::kRdma; }

/// Kept for Endpoint::status(): an operation reports its own failure, but a peer may fail without one in flight.
void on_endpoint_error(void* text, ucp_ep_h /*ep*/, ucs_status_t status) {
  auto& failure = *static_cast<std::string*>(text);
  if (failure.empty() && !attempt([&] { failure = ucs_status_string(status); })) failure = no_memory().message();
}

Status no_such(const char* what) { return {StatusCode::kUnsupported, fmt::format("{} over this transport", what)}; }

}  // namespace

std::string ucx_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

// ---------------------------------------------------------------- Region

Region::~Region() {
  if (context_ == nullptr || context_->inherited()) return;
  if (memory_ == nullptr) {
    context_->registered_.remove(reinterpret_cast<std::uint64_t>(data_), size_);
    if (owned_) munmap(data_, size_);
    return;
  }
  context_->count_call();
  ucp_mem_unmap(context_->handle(), memory_);
}

void Region::swap(Region& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(memory_, other.memory_);
  std::swap(owned_, other.owned_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

Status Region::pack_key(Bytes& out) const {
  if (memory_ == nullptr) {  // the address says it all
    out.push_back(std::byte{1});
    return ok_status();
  }
  void* key = nullptr;
  std::size_t bytes = 0;
  context_->count_call();
  const ucs_status_t status = ucp_rkey_pack(context_->handle(), memory_, &key, &bytes);
  if (status != UCS_OK) return failed("cannot export registered memory", status);
  const auto* first = static_cast<const std::byte*>(key);
  out.insert(out.end(), first, first + bytes);
  ucp_rkey_buffer_release(key);
  return ok_status();
}

// ---------------------------------------------------------------- Context

Result<std::shared_ptr<Context>> Context::create(Transport transport) {
  if (transport == Transport::kShm || transport == Transport::kRdma) return create_ucx(transport);
  if (transport == Transport::kAuto) {
    if (auto rdma = create_ucx(Transport::kRdma)) return rdma;
  }
  auto context = std::shared_ptr<Context>(new Context);
  context->transport_ = Transport::kTcp;
  return context;
}

bool rdma_is_here() {
  static const bool here = Context::create(Transport::kRdma).ok();
  return here;
}

Result<std::shared_ptr<Context>> Context::create_ucx(Transport transport) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read("WHERRY", nullptr, &config);
  if (status != UCS_OK) return failed("UCX configuration", status);
  ucp_config_modify(config, "TLS", ucx_transports(transport));
  // A named transport is used, or it is an error: there is no fallback, so UCX need not warn about one.
  ucp_config_modify(config, "WARN_UNUSED_ENV_VARS", "n");
  // The number of pieces that CMA processes before other work, so an offload of many columns needs one pass.
  (void)ucp_config_modify(config, "CMA_TX_QUOTA", "32");
  // mt_workers_shared stays off: it is for several workers in several concurrent threads (ucp.h). Each Wherry context
  // has one worker. Threads that share it take turns under a lock that also covers registration (FabricLock).
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
  params.name = "wherry";
  auto context = std::shared_ptr<Context>(new Context);
  if (transport == Transport::kShm) {
    context->segments_ = SegmentDirectory::get();
    if (context->segments_) (void)ucp_config_modify(config, "POSIX_DIR", context->segments_->path().c_str());
  }
  status = ucp_init(&params, config, &context->context_);
  ucp_config_release(config);
  if (status != UCS_OK || !has_resource(context->context_, transport)) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("transport '{}' cannot be had here with UCX {}: {}{}", to_string(transport),
                              ucx_version(), status == UCS_OK ? "no such device" : ucs_status_string(status),
                              transport == Transport::kRdma
                                  ? "; /sys/class/infiniband lists the RDMA devices that this machine has"
                                  : ""));
  }
  context->transport_ = transport;
  return context;
}

Context::~Context() {
  if (context_ != nullptr && !inherited()) ucp_cleanup(context_);
}

Result<Region> Context::register_memory(void* data, std::size_t bytes) {
  if (context_ == nullptr) {
    Region region;
    region.context_ = shared_from_this();
    region.data_ = static_cast<std::byte*>(data);
    region.size_ = bytes;
    registered_.add(reinterpret_cast<std::uint64_t>(data), bytes);
    return region;
  }
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  params.address = data;
  params.length = bytes;
  Region region;
  count_call();
  const ucs_status_t status = ucp_mem_map(context_, &params, &region.memory_);
  if (status != UCS_OK) {
    region.memory_ = nullptr;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("cannot register {} bytes at {}: {}", bytes, data, ucs_status_string(status)));
  }
  region.context_ = shared_from_this();
  region.data_ = static_cast<std::byte*>(data);
  region.size_ = bytes;
  return region;
}

/// Without this check, UCX fills /dev/shm and then ordinary memory, until the kernel kills a process.
Status Context::has_room(std::size_t bytes) const {
  const bool shared = context_ != nullptr;
  const FreeMemory least = free_memory(!shared ? "" : segments_ ? segments_->path() : "/dev/shm");
  // Additional space for page tables and UCX's rounding.
  const std::uint64_t slack = bytes / 256 + (std::uint64_t{1} << 20);
  if (bytes <= least.bytes && least.bytes - bytes >= slack) return ok_status();
  return {StatusCode::kResourceExhausted,
          fmt::format("cannot allocate {} bytes{}, which take {} with what must stay free: {} are free in {}; allocate "
                      "less, or free some",
                      bytes, shared ? " of shared memory" : "", bytes + slack, least.bytes, least.where)};
}

Result<Region> Context::allocate(std::size_t bytes) {
  WHERRY_TRY(has_room(bytes));
  if (context_ == nullptr) {
    // Populated: every page is touched.
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED) {
      return Status(StatusCode::kResourceExhausted,
                    fmt::format("cannot allocate {} bytes of memory: {}", bytes, std::strerror(errno)));
    }
    auto region = guarded([&] { return register_memory(memory, bytes); });
    if (region)
      region->owned_ = true;
    else
      munmap(memory, bytes);
    return region;
  }
  ucp_mem_map_params_t params{};
  params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
  params.address = nullptr;
  params.length = bytes;
  params.flags = UCP_MEM_MAP_ALLOCATE;
  Region region;
  count_call();
  ucs_status_t status = ucp_mem_map(context_, &params, &region.memory_);
  if (status != UCS_OK) {
    region.memory_ = nullptr;
    return Status(StatusCode::kResourceExhausted,
                  fmt::format("cannot allocate {} bytes of shared memory: {}", bytes, ucs_status_string(status)));
  }
  region.context_ = shared_from_this();
  ucp_mem_attr_t attributes{};
  attributes.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH;
  status = ucp_mem_query(region.memory_, &attributes);
  if (status != UCS_OK) return failed("allocated memory", status);
  region.data_ = static_cast<std::byte*>(attributes.address);
  region.size_ = bytes;
  std::memset(region.data_, 0, bytes);
  return region;
}

// ---------------------------------------------------------------- Worker

Result<std::unique_ptr<Worker>> Worker::create(std::shared_ptr<Context> context) {
  auto worker = std::unique_ptr<Worker>(new Worker);
  worker->context_ = std::move(context);
  if (worker->context_->transport() == Transport::kTcp) {
    auto deliver = [raw = worker.get()](std::uint32_t id, ByteView message) {
      for (const auto& [known, handler] : raw->stream_handlers_) {
        if (known == id) handler.function(handler.context, message);
      }
    };
    worker->stream_ = std::make_unique<StreamWorker>(worker->context_->registered(), deliver);
    return worker;
  }
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // "One thread at a time", not "always the same thread": a progress thread takes turns under a lock.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = ucp_worker_create(worker->context_->handle(), &params, &worker->worker_);
  if (status != UCS_OK) return failed("UCX worker", status);
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  status = ucp_worker_get_address(worker->worker_, &address, &bytes);
  if (status != UCS_OK) return failed("UCX worker address", status);
  const auto* first = reinterpret_cast<const std::byte*>(address);
  worker->address_.assign(first, first + bytes);
  ucp_worker_release_address(worker->worker_, address);
  return worker;
}

Worker::~Worker() {
  // A child of fork() must not destroy the stream worker either: the parent uses the same epoll instance.
  if (context_->inherited()) (void)stream_.release();
  if (worker_ != nullptr && !context_->inherited()) ucp_worker_destroy(worker_);
}

Status Worker::listen(const StreamOptions& options) {
  if (stream_ == nullptr) return no_such("a listener");
  Status s = stream_->listen(options);
  if (s) address_ = stream_->address();
  return s;
}

unsigned Worker::progress() noexcept {
  context_->count_call();
  if (stream_ != nullptr) return stream_->progress();
  return ucp_worker_progress(worker_);
}

Status Worker::on_message(unsigned id, MessageHandler handler, void* context) {
  if (stream_ != nullptr) {
    stream_handlers_.emplace_back(id, Handler{handler, context});
    return ok_status();
  }
  handlers_.push_back(std::make_unique<Handler>(Handler{handler, context}));
  ucp_am_handler_param_t params{};
  params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG;
  params.id = id;
  params.flags = UCP_AM_FLAG_WHOLE_MSG;
  params.cb = on_active_message;
  params.arg = handlers_.back().get();
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &params);
  return status == UCS_OK ? ok_status() : failed("message handler", status);
}

// ---------------------------------------------------------------- RemoteRegion

RemoteRegion& RemoteRegion::operator=(RemoteRegion&& other) noexcept {
  std::swap(known_, other.known_);
  std::swap(key_, other.key_);
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  std::swap(mark_, other.mark_);
  return *this;
}

RemoteRegion::~RemoteRegion() {
  if (key_ != nullptr && !mark_.inherited()) ucp_rkey_destroy(key_);
}

// ---------------------------------------------------------------- Endpoint

Endpoint::Endpoint() noexcept = default;

Endpoint Endpoint::over(Worker& worker, std::unique_ptr<ByteStream> stream) {
  Endpoint endpoint;
  endpoint.worker_ = &worker;
  endpoint.link_ = worker.stream()->adopt(std::move(stream));
  return endpoint;
}

Result<Endpoint> Endpoint::connect(Worker& worker, ByteView peer_address, const std::string& who) {
  if (peer_address.empty()) return Status(StatusCode::kProtocol, "the peer sent no worker address");
  if (worker.stream() != nullptr) {
    WHERRY_ASSIGN(auto link, worker.stream()->connect(peer_address, who));
    Endpoint endpoint;
    endpoint.worker_ = &worker;
    endpoint.link_ = std::move(link);
    return endpoint;
  }
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer_address.data());
  const Transport transport = worker.context()->transport();
  params.err_mode = notices_failures(transport) ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  params.err_handler.cb = on_endpoint_error;
  Endpoint endpoint;
  endpoint.failure_ = std::make_unique<std::string>();
  params.err_handler.arg = endpoint.failure_.get();
  endpoint.worker_ = &worker;
  const ucs_status_t status = ucp_ep_create(worker.handle(), &params, &endpoint.ep_);
  if (status != UCS_OK) {
    endpoint.ep_ = nullptr;
    // With shared memory this does not mean that the peer is absent, but that its memory cannot be reached (it may
    // belong to another user).
    return Status(
        transport == Transport::kShm ? StatusCode::kUnsupported : StatusCode::kUnavailable,
        fmt::format(
            "cannot connect over transport '{}': {}{}", to_string(transport), ucs_status_string(status),
            transport == Transport::kShm ? " (both sides must run as one user, with the same capabilities)" : ""));
  }
  return endpoint;
}

Endpoint& Endpoint::operator=(Endpoint&& other) noexcept {
  swap(other);
  return *this;
}

void Endpoint::swap(Endpoint& other) noexcept {
  std::swap(worker_, other.worker_);
  std::swap(ep_, other.ep_);
  std::swap(failure_, other.failure_);
  std::swap(link_, other.link_);
}

Status Endpoint::status() const {
  if (link_ != nullptr) return link_->lost();
  if (failure_ == nullptr || failure_->empty()) return ok_status();
  return {StatusCode::kUnavailable, *failure_};
}

bool Endpoint::failed() const noexcept {
  return link_ != nullptr ? !link_->lost().ok() : failure_ != nullptr && !failure_->empty();
}

bool Endpoint::say_bye() {
  if (link_ == nullptr || worker_->context()->inherited()) return true;
  const bool gone = link_->say_bye();
  worker_->stream()->touch(*link_);
  return gone;
}

Endpoint::~Endpoint() {
  if (worker_ == nullptr || (ep_ == nullptr && link_ == nullptr) || worker_->context()->inherited()) return;
  if (link_ != nullptr) {
    if (link_->under_way()) link_->lose({StatusCode::kUnavailable, "closed"});  // needs no memory
    worker_->stream()->drop(link_);
  }
  if (ep_ == nullptr) return;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  // Force the close if UCX allows it, because that needs nothing from the peer. Without a failure handler UCX refuses a
  // forced close, and would keep the endpoint and its mappings of the peer. So there, close with a flush. Gets and puts
  // through shared memory complete even if the peer is dead.
  params.flags = notices_failures(worker_->context()->transport()) ? UCP_EP_CLOSE_FLAG_FORCE : 0;
  ucs_status_ptr_t request = ucp_ep_close_nbx(counted(), &params);
  if (UCS_PTR_IS_PTR(request)) {
    // This ends within a few progress calls. Only messages to a dead process whose queue is full wait longer; they
    // remain with the worker.
    const Deadline deadline(std::chrono::seconds(2));
    while (ucp_request_check_status(request) == UCS_INPROGRESS && !deadline.passed())
      ucp_worker_progress(worker_->handle());
    ucp_request_free(request);
  }
}

Status Endpoint::send(unsigned id, ByteView data, Completion& done) {
  if (link_ != nullptr) {
    Status s = link_->send(id, data, done);
    worker_->stream()->touch(*link_);
    return s;
  }
  ucp_request_param_t params = params_for(done);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  return started("send", ucp_am_send_nbx(counted(), id, nullptr, 0, data.data(), data.size(), &params), done);
}

Status Endpoint::get(std::byte* to, const Region& local, const RemoteRegion& from, std::uint64_t address,
                     std::size_t bytes, Completion& done) {
  if (link_ != nullptr) {
    Status s = link_->get(to, address, bytes, done);
    worker_->stream()->touch(*link_);
    return s;
  }
  ucp_request_param_t params = params_for(done);
  params.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
  params.memh = local.handle();
  return started("get", ucp_get_nbx(counted(), to, bytes, address, from.handle(), &params), done);
}

Status Endpoint::put(const std::byte* from, const RemoteRegion& to, std::uint64_t address, std::size_t bytes,
                     Completion& done) {
  if (link_ != nullptr) {
    Status s = link_->put(from, address, bytes, done);
    worker_->stream()->touch(*link_);
    return s;
  }
  ucp_request_param_t params = params_for(done);
  return started("put", ucp_put_nbx(counted(), from, bytes, address, to.handle(), &params), done);
}

Status Endpoint::flush(Completion& done) {
  if (link_ != nullptr) return link_->flush(done);
  ucp_request_param_t params = params_for(done);
  return started("flush", ucp_ep_flush_nbx(counted(), &params), done);
}

Result<RemoteRegion> Endpoint::unpack(ByteView key, std::uint64_t base, std::uint64_t size, pid_t owner) const {
  if (link_ != nullptr) {  // what the peer offers it looks up itself
    RemoteRegion offered;
    offered.known_ = true;
    offered.base_ = base;
    offered.size_ = size;
    return offered;
  }
  if (ep_ == nullptr) return Status(StatusCode::kUnavailable, "remote key: there is no connection any more");
  if (key.empty()) return Status(StatusCode::kProtocol, "remote key: it is empty");
  // UCX gets no length of the key, and reads as far as the key's content says. So zeros must follow the key.
  constexpr std::size_t kSlack = 1024;
  Bytes padded(key.size() + kSlack);
  std::ranges::copy(key, padded.begin());
  RemoteRegion region;
  region.known_ = true;
  const ucs_status_t status = ucp_ep_rkey_unpack(counted(), padded.data(), &region.key_);
  if (status != UCS_OK) {
    region.key_ = nullptr;
    return Status(StatusCode::kProtocol, fmt::format("remote key: {}", ucs_status_string(status)));
  }
  region.base_ = base;
  region.size_ = size;
  void* local = nullptr;
  if (ucp_rkey_ptr(region.key_, base, &local) != UCS_OK) return region;
  // UCX's own gets and puts also load and store in this mapping, so a region that is smaller than claimed is refused.
  region.mapped_ = static_cast<std::byte*>(local);
  const auto there = shared_bytes(owner, base, region.mapped_);
  if (!there || *there < size) {
    return Status(there ? StatusCode::kInvalidArgument : there.status().code(),
                  fmt::format("shared memory was announced with {} bytes at {:#x}: {}", size, base,
                              there ? fmt::format("there are {}", *there) : there.status().message()));
  }
  return region;
}

std::string Endpoint::transports() const {
  if (link_ != nullptr) return link_->kind();
  std::array<ucp_transport_entry_t, 16> entries{};
  ucp_ep_attr_t attributes{};
  attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  attributes.transports.entries = entries.data();
  attributes.transports.num_entries = entries.size();
  attributes.transports.entry_size = sizeof entries[0];
  if (ucp_ep_query(counted(), &attributes) != UCS_OK) return "unknown";
  std::set<std::string> names;
  for (unsigned i = 0; i < attributes.transports.num_entries; ++i) {
    names.insert(fmt::format("{}/{}", entries[i].transport_name, entries[i].device_name));
  }
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

}  // namespace wherry::fabric
