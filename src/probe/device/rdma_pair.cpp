// SPDX-License-Identifier: Apache-2.0
#include "probe/device/rdma_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text_file.hpp"
#include "base/try.hpp"

namespace wherry::probe {
namespace {

constexpr unsigned kMostGids = 256;
constexpr std::uint8_t kHops = 64, kTimeout = 14, kRetries = 7,
                       kMinRnr = 12;  // ibv_modify_qp: 4.096 us x 2^14; 0.64 ms
constexpr int kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

Status failed(const char* call, int error) {
  return {StatusCode::kUnavailable, fmt::format("{}: {}", call, std::strerror(error))};
}

/// Whether RoCE's address is an IPv4 address (RFC 4291, 2.5.5.2).
bool is_ipv4(const ibv_gid& gid) {
  static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

}  // namespace

Result<std::unique_ptr<RdmaDevice>> RdmaDevice::open(std::shared_ptr<const VerbsApi> verbs, const Options& options) {
  std::unique_ptr<RdmaDevice> device(new RdmaDevice(std::move(verbs)));
  WHERRY_TRY(device->find(options));
  WHERRY_TRY(device->choose_address(options.sysfs));
  WHERRY_TRY(device->make_pairs(options));
  return device;
}

RdmaDevice::~RdmaDevice() {
  for (const RdmaPair& pair : pairs_)
    for (ibv_qp* const one : {pair.near, pair.far})
      if (one != nullptr) verbs_->destroy_qp(one);
  for (ibv_mr* const region : regions_) verbs_->dereg_mr(region);
  if (queue_ != nullptr) verbs_->destroy_cq(queue_);
  if (channel_ != nullptr) verbs_->destroy_comp_channel(channel_);
  if (domain_ != nullptr) verbs_->dealloc_pd(domain_);
  if (context_ != nullptr) verbs_->close_device(context_);
}

Status RdmaDevice::find(const Options& options) {
  int count = 0;
  ibv_device** const list = verbs_->get_device_list(&count);
  if (list == nullptr) return failed("ibv_get_device_list", errno);
  for (int i = 0; i < count && context_ == nullptr; ++i) {
    name_ = verbs_->device_name(list[i]);
    if (!options.name.empty() && options.name != name_) continue;
    context_ = verbs_->open_device(list[i]);
    ibv_device_attr device{};
    if (context_ == nullptr || verbs_->query_device(context_, &device) != 0) continue;
    reads_ = static_cast<std::uint8_t>(std::clamp(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom), 1, 16));
    atomics_ = device.atomic_cap != IBV_ATOMIC_NONE;
    bool active = false;
    for (port_ = 1; port_ <= device.phys_port_cnt && !active; ++port_)
      active = verbs_->query_port(context_, port_, reinterpret_cast<_compat_ibv_port_attr*>(&attributes_)) == 0 &&
               attributes_.state == IBV_PORT_ACTIVE;
    --port_;
    if (active) continue;
    verbs_->close_device(context_);
    context_ = nullptr;
  }
  verbs_->free_device_list(list);
  if (context_ != nullptr) return {};
  return {StatusCode::kNotFound,
          options.name.empty() ? "no RDMA device has an active port"
                               : fmt::format("RDMA device {} has no active port, or does not exist", options.name)};
}

/// Prefers RoCE v2 with an IPv4 address, because others may not be routed. InfiniBand uses the LID.
Status RdmaDevice::choose_address(const std::string& sysfs) {
  if (attributes_.link_layer != IBV_LINK_LAYER_ETHERNET) return {};
  int best = -1;
  for (unsigned index = 0; index < std::min<unsigned>(kMostGids, static_cast<unsigned>(attributes_.gid_tbl_len));
       ++index) {
    ibv_gid gid{};
    if (verbs_->query_gid(context_, port_, static_cast<int>(index), &gid) != 0) continue;
    if (std::all_of(std::begin(gid.raw), std::end(gid.raw), [](std::uint8_t byte) { return byte == 0; })) continue;
    const auto type =
        read_text_file(fmt::format("{}/class/infiniband/{}/ports/{}/gid_attrs/types/{}", sysfs, name_, port_, index),
                       "the type of a GID", 64);
    const int value = (type && type->starts_with("RoCE v2") ? 2 : 0) + (is_ipv4(gid) ? 1 : 0);
    if (value <= best) continue;
    best = value;
    gid_ = gid;
    gid_index_ = static_cast<std::uint8_t>(index);
  }
  if (best >= 0) return {};
  return {StatusCode::kUnavailable,
          fmt::format("port {} of {} has no address: give its network interface one", port_, name_)};
}

Status RdmaDevice::make_pairs(const Options& options) {
  domain_ = verbs_->alloc_pd(context_);
  if (domain_ == nullptr) return failed("ibv_alloc_pd", errno);
  if (options.sleeps) {
    channel_ = verbs_->create_comp_channel(context_);
    if (channel_ == nullptr) return failed("ibv_create_comp_channel", errno);
  }
  // Each request may cause a completion at each of the two sides.
  queue_ = verbs_->create_cq(context_, static_cast<int>(2 * options.pairs * options.depth + 1), nullptr, channel_, 0);
  if (queue_ == nullptr) return failed("ibv_create_cq", errno);
  pairs_.resize(options.pairs);
  for (RdmaPair& pair : pairs_) {
    for (ibv_qp** const one : {&pair.near, &pair.far}) {
      ibv_qp_init_attr wanted{};
      wanted.send_cq = wanted.recv_cq = queue_;
      wanted.qp_type = IBV_QPT_RC;
      wanted.cap = {.max_send_wr = options.depth,
                    .max_recv_wr = options.depth,
                    .max_send_sge = 1,
                    .max_recv_sge = 1,
                    .max_inline_data = 0};
      *one = verbs_->create_qp(domain_, &wanted);
      if (*one == nullptr) return failed("ibv_create_qp", errno);
    }
    WHERRY_TRY(connect(pair.near, pair.far->qp_num));
    WHERRY_TRY(connect(pair.far, pair.near->qp_num));
  }
  return {};
}

Status RdmaDevice::connect(ibv_qp* pair, std::uint32_t to) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = port_;
  attr.qp_access_flags = kAccess;
  if (const int error =
          verbs_->modify_qp(pair, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
      error != 0)
    return failed("ibv_modify_qp to INIT", error);
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = attributes_.active_mtu;
  attr.dest_qp_num = to;
  attr.max_dest_rd_atomic = reads_;
  attr.min_rnr_timer = kMinRnr;
  attr.ah_attr.port_num = port_;
  attr.ah_attr.dlid = attributes_.lid;
  if (attributes_.link_layer == IBV_LINK_LAYER_ETHERNET) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.dgid = gid_;
    attr.ah_attr.grh.sgid_index = gid_index_;
    attr.ah_attr.grh.hop_limit = kHops;
  }
  if (const int error = verbs_->modify_qp(pair, &attr,
                                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
      error != 0)
    return failed("ibv_modify_qp to RTR", error);
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = kTimeout;
  attr.retry_cnt = attr.rnr_retry = kRetries;
  attr.max_rd_atomic = reads_;
  if (const int error = verbs_->modify_qp(pair, &attr,
                                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
      error != 0)
    return failed("ibv_modify_qp to RTS", error);
  return {};
}

Result<ibv_mr*> RdmaDevice::register_memory(std::span<std::byte> memory) {
  ibv_mr* const region =
      verbs_->reg_mr(domain_, memory.data(), memory.size(), kAccess & ~(atomics_ ? 0 : IBV_ACCESS_REMOTE_ATOMIC));
  if (region == nullptr) return failed("ibv_reg_mr (raise `ulimit -l`?)", errno);
  regions_.push_back(region);
  return region;
}

Result<unsigned> RdmaDevice::poll(std::span<ibv_wc> into) {
  const int found = ibv_poll_cq(queue_, static_cast<int>(into.size()), into.data());
  if (found < 0) return Status(StatusCode::kUnavailable, "ibv_poll_cq failed");
  for (const ibv_wc& one : into.first(static_cast<std::size_t>(found)))
    if (one.status != IBV_WC_SUCCESS)
      return Status(StatusCode::kUnavailable,
                    fmt::format("an RDMA request failed: {}", verbs_->status_text(one.status)));
  return static_cast<unsigned>(found);
}

Status RdmaDevice::wait() {
  if (!armed_) {  // what has ended before it was armed causes no event: the caller polls once more
    if (const int error = ibv_req_notify_cq(queue_, 0); error != 0) return failed("ibv_req_notify_cq", error);
    armed_ = true;
    return {};
  }
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  if (verbs_->get_cq_event(channel_, &queue, &context) != 0) return failed("ibv_get_cq_event", errno);
  verbs_->ack_cq_events(queue, 1);
  armed_ = false;
  return {};
}

}  // namespace wherry::probe
