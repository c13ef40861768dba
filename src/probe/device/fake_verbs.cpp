// SPDX-License-Identifier: Apache-2.0
// For tests: a library with the part of libibverbs that probe uses, on memory of this
// process. Written from rdma-core's manual pages and the InfiniBand specification, not
// from rdma_pair.cpp. A request is executed only when a call polls for completions.
#include "probe/device/fake_verbs.hpp"

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_get_device_list

#define EXPORTED extern "C" [[gnu::visibility("default")]]

namespace {

struct Request {
  std::uint64_t id = 0, remote = 0, compare = 0, swap = 0;
  std::uint32_t rkey = 0;
  ibv_wr_opcode opcode{};
  std::byte* local = nullptr;
  std::size_t bytes = 0;
};
struct Receive {
  std::uint64_t id = 0;
  std::byte* into = nullptr;
  std::size_t bytes = 0;
};
struct Pair {
  ibv_qp base{};
  ibv_qp_state state = IBV_QPS_RESET;
  std::uint32_t destination = 0;
  unsigned most_sends = 0, most_receives = 0;
  std::deque<Request> sends;
  std::deque<Receive> receives;
};
struct Queue {
  ibv_cq base{};
  std::deque<ibv_wc> ends;
  int most = 0;
  bool armed = false, event = false;
};

struct Library {
  int devices = 1;
  ibv_device device{};
  std::unique_ptr<ibv_context> context;
  std::map<std::uint32_t, std::unique_ptr<Pair>> pairs;  // by number
  std::unique_ptr<Queue> queue;
  std::map<std::uint32_t, std::pair<std::unique_ptr<ibv_mr>, int>> regions;  // by key, with their access
  unsigned domains = 0, channels = 0, lists = 0, flip = 0, fail = 0, sleeps = 0;
  std::uint32_t next = 100;
  std::string misuse;
};
Library& library() {
  static Library one;
  return one;
}
int misused(const std::string& what, int error) {
  library().misuse += what + "\n";
  return error;
}

ibv_gid gid_of(int index) {
  ibv_gid gid{};
  if (index == 0) {
    gid.raw[0] = 0xFE;
    gid.raw[1] = 0x80;
    gid.raw[15] = 1;
  }
  if (index == 1) {
    gid.raw[10] = gid.raw[11] = 0xFF;
    gid.raw[12] = 10;
    gid.raw[15] = 1;
  }
  return gid;
}

/// The memory with this key, or null if the range is not within it or the access right is missing.
std::byte* reach(std::uint32_t key, std::uint64_t address, std::size_t bytes, int access) {
  const auto found = library().regions.find(key);
  if (found == library().regions.end()) return nullptr;
  const auto first = reinterpret_cast<std::uint64_t>(found->second.first->addr);
  const std::size_t length = found->second.first->length;
  if ((found->second.second & access) != access || address < first || address - first > length ||
      bytes > length - (address - first))
    return nullptr;
  return reinterpret_cast<std::byte*>(address);
}

void finish(std::uint64_t id, ibv_wc_status status) {
  Queue& queue = *library().queue;
  ibv_wc end{};
  end.wr_id = id;
  end.status = status;
  if (static_cast<int>(queue.ends.size()) >= queue.most) misused("a completion queue overflows", 0);
  queue.ends.push_back(end);
  if (queue.armed) queue.event = true;
  queue.armed = false;
}

void spoil(std::byte* at, std::size_t bytes) {
  if (library().flip != 0 && --library().flip == 0) at[bytes - 1] ^= std::byte{4};
}

void execute(Pair& pair, const Request& one) {
  Library& all = library();
  if (all.fail != 0 && --all.fail == 0) return finish(one.id, IBV_WC_RETRY_EXC_ERR);
  const auto peer = all.pairs.find(pair.destination);
  if (peer == all.pairs.end() || peer->second->destination != pair.base.qp_num || peer->second->state < IBV_QPS_RTR)
    return finish(one.id, IBV_WC_RETRY_EXC_ERR);
  if (one.opcode == IBV_WR_SEND) {
    auto& receives = peer->second->receives;
    if (receives.empty()) return finish(one.id, IBV_WC_RNR_RETRY_EXC_ERR);
    const Receive into = receives.front();
    receives.pop_front();
    if (into.bytes < one.bytes) return finish(one.id, IBV_WC_REM_INV_REQ_ERR);
    std::memcpy(into.into, one.local, one.bytes);
    spoil(into.into, one.bytes);
    finish(one.id, IBV_WC_SUCCESS);
    return finish(into.id, IBV_WC_SUCCESS);
  }
  const int access = one.opcode == IBV_WR_RDMA_READ    ? IBV_ACCESS_REMOTE_READ
                     : one.opcode == IBV_WR_RDMA_WRITE ? IBV_ACCESS_REMOTE_WRITE
                                                       : IBV_ACCESS_REMOTE_ATOMIC;
  std::byte* const remote = reach(one.rkey, one.remote, one.bytes, access);
  if (remote == nullptr) return finish(one.id, IBV_WC_REM_ACCESS_ERR);
  switch (one.opcode) {
    case IBV_WR_RDMA_READ:
      std::memcpy(one.local, remote, one.bytes);
      spoil(one.local, one.bytes);
      break;
    case IBV_WR_RDMA_WRITE:
      std::memcpy(remote, one.local, one.bytes);
      spoil(remote, one.bytes);
      break;
    default: {
      std::uint64_t old = 0;
      std::memcpy(&old, remote, 8);
      std::memcpy(one.local, &old, 8);
      if (old == one.compare) std::memcpy(remote, &one.swap, 8);
      spoil(remote, 8);
    }
  }
  finish(one.id, IBV_WC_SUCCESS);
}

/// Executes one request of each queue pair.
bool work() {
  bool any = false;
  for (auto& [number, pair] : library().pairs) {
    if (pair->sends.empty()) continue;
    const Request one = pair->sends.front();
    pair->sends.pop_front();
    execute(*pair, one);
    any = true;
  }
  return any;
}

int poll_cq(ibv_cq*, int most, ibv_wc* into) {
  auto& ends = library().queue->ends;
  const int found = std::min(most, static_cast<int>(ends.size()));  // of what was done before this question
  std::copy_n(ends.begin(), found, into);
  ends.erase(ends.begin(), ends.begin() + found);
  work();
  return found;
}
int req_notify_cq(ibv_cq* queue, int) {
  if (queue->channel == nullptr) return misused("a queue without a channel was armed", EINVAL);
  library().queue->armed = true;
  return 0;
}
int post_send(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  Pair& pair = *library().pairs.at(qp->qp_num);
  *bad = wr;
  if (pair.state != IBV_QPS_RTS) return misused("a send before RTS", EINVAL);
  if (wr->next != nullptr || wr->num_sge != 1 || (wr->send_flags & IBV_SEND_SIGNALED) == 0)
    return misused("a request that the stand-in does not know", EINVAL);
  if (pair.sends.size() >= pair.most_sends) return ENOMEM;
  const bool writes_here = wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_RDMA_WRITE;
  Request one{.id = wr->wr_id, .opcode = wr->opcode, .bytes = wr->sg_list->length};
  one.local = reach(wr->sg_list->lkey, wr->sg_list->addr, one.bytes, writes_here ? IBV_ACCESS_LOCAL_WRITE : 0);
  if (one.local == nullptr) return misused("a request's own memory is not registered", EINVAL);
  if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    one.remote = wr->wr.atomic.remote_addr;
    one.rkey = wr->wr.atomic.rkey;
    one.compare = wr->wr.atomic.compare_add;
    one.swap = wr->wr.atomic.swap;
    if (one.bytes != 8 || one.remote % 8 != 0) return misused("an atomic that is not 8 aligned bytes", EINVAL);
  } else {
    one.remote = wr->wr.rdma.remote_addr;
    one.rkey = wr->wr.rdma.rkey;
  }
  pair.sends.push_back(one);
  return 0;
}
int post_recv(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  Pair& pair = *library().pairs.at(qp->qp_num);
  *bad = wr;
  if (pair.receives.size() >= pair.most_receives) return ENOMEM;
  std::byte* const into = reach(wr->sg_list->lkey, wr->sg_list->addr, wr->sg_list->length, IBV_ACCESS_LOCAL_WRITE);
  if (into == nullptr) return misused("a receive's memory is not registered", EINVAL);
  pair.receives.push_back({wr->wr_id, into, wr->sg_list->length});
  return 0;
}

}  // namespace

EXPORTED void wherry_fake_verbs_reset(int devices) {
  library() = {};
  library().devices = devices;
}
EXPORTED void wherry_fake_verbs_flip(unsigned number) { library().flip = number; }
EXPORTED void wherry_fake_verbs_fail(unsigned number) { library().fail = number; }
EXPORTED unsigned wherry_fake_verbs_sleeps() { return library().sleeps; }
EXPORTED const char* wherry_fake_verbs_misuse() { return library().misuse.c_str(); }
EXPORTED unsigned wherry_fake_verbs_held() {
  const Library& all = library();
  return static_cast<unsigned>(all.pairs.size() + all.regions.size()) + all.domains + all.channels + all.lists +
         (all.context ? 1U : 0U) + (all.queue ? 1U : 0U);
}

EXPORTED ibv_device** ibv_get_device_list(int* count) {
  *count = library().devices;
  ++library().lists;
  auto** const list = new ibv_device*[2]{library().devices != 0 ? &library().device : nullptr, nullptr};
  return list;
}
EXPORTED void ibv_free_device_list(ibv_device** list) {
  --library().lists;
  delete[] list;
}
EXPORTED const char* ibv_get_device_name(ibv_device*) { return "standin0"; }
EXPORTED ibv_context* ibv_open_device(ibv_device* device) {
  library().context = std::make_unique<ibv_context>();
  ibv_context* const context = library().context.get();
  context->device = device;
  context->ops.poll_cq = poll_cq;
  context->ops.req_notify_cq = req_notify_cq;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  return context;
}
EXPORTED int ibv_close_device(ibv_context*) {
  if (library().domains != 0 || library().queue || library().channels != 0)
    misused("a device was closed while it was in use", 0);
  library().context.reset();
  return 0;
}
EXPORTED int ibv_query_device(ibv_context*, ibv_device_attr* attr) {
  *attr = {};
  attr->phys_port_cnt = 2;
  attr->max_qp_rd_atom = attr->max_qp_init_rd_atom = 16;
  attr->atomic_cap = IBV_ATOMIC_HCA;
  return 0;
}
EXPORTED int ibv_query_port(ibv_context*, std::uint8_t port, _compat_ibv_port_attr* into) {
  auto* const attr = reinterpret_cast<ibv_port_attr*>(into);
  attr->state = port == 2 ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  attr->active_mtu = IBV_MTU_4096;
  attr->link_layer = IBV_LINK_LAYER_ETHERNET;
  attr->gid_tbl_len = 3;
  return port == 1 || port == 2 ? 0 : EINVAL;
}
EXPORTED int ibv_query_gid(ibv_context*, std::uint8_t, int index, ibv_gid* gid) {
  *gid = gid_of(index);
  return 0;
}
EXPORTED ibv_pd* ibv_alloc_pd(ibv_context* context) {
  ++library().domains;
  return new ibv_pd{.context = context};
}
EXPORTED int ibv_dealloc_pd(ibv_pd* domain) {
  if (!library().pairs.empty() || !library().regions.empty())
    misused("a protection domain went while it was in use", 0);
  --library().domains;
  delete domain;
  return 0;
}
EXPORTED ibv_mr* ibv_reg_mr(ibv_pd* domain, void* at, std::size_t bytes, int access) {
  auto region = std::make_unique<ibv_mr>();
  region->context = domain->context;
  region->pd = domain;
  region->addr = at;
  region->length = bytes;
  region->lkey = region->rkey = library().next++;
  ibv_mr* const made = region.get();
  library().regions[made->lkey] = {std::move(region), access};
  return made;
}
EXPORTED int ibv_dereg_mr(ibv_mr* region) {
  library().regions.erase(region->lkey);
  return 0;
}
EXPORTED ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  ++library().channels;
  return new ibv_comp_channel{.context = context, .fd = -1, .refcnt = 0};
}
EXPORTED int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  --library().channels;
  delete channel;
  return 0;
}
EXPORTED ibv_cq* ibv_create_cq(ibv_context* context, int most, void*, ibv_comp_channel* channel, int) {
  library().queue = std::make_unique<Queue>();
  library().queue->base.context = context;
  library().queue->base.channel = channel;
  library().queue->most = most;
  return &library().queue->base;
}
EXPORTED int ibv_destroy_cq(ibv_cq*) {
  if (!library().pairs.empty()) misused("a completion queue went before its queue pairs", 0);
  library().queue.reset();
  return 0;
}
EXPORTED int ibv_get_cq_event(ibv_comp_channel*, ibv_cq** queue, void** context) {
  Queue& one = *library().queue;
  ++library().sleeps;
  while (!one.event)
    if (!work()) return errno = misused("a wait for an event that never comes", EDEADLK), -1;
  one.event = false;
  *queue = &one.base;
  *context = nullptr;
  return 0;
}
EXPORTED void ibv_ack_cq_events(ibv_cq*, unsigned) {}
EXPORTED ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  auto pair = std::make_unique<Pair>();
  pair->base.context = domain->context;
  pair->base.qp_num = library().next++;
  pair->most_sends = wanted->cap.max_send_wr;
  pair->most_receives = wanted->cap.max_recv_wr;
  ibv_qp* const made = &pair->base;
  library().pairs[made->qp_num] = std::move(pair);
  return made;
}
EXPORTED int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) {
  // The attributes that each transition requires (ibv_modify_qp(3), RC).
  constexpr int kInit = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  constexpr int kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  constexpr int kRts =
      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT;
  Pair& pair = *library().pairs.at(qp->qp_num);
  const bool right = (pair.state == IBV_QPS_RESET && attr->qp_state == IBV_QPS_INIT && mask == kInit) ||
                     (pair.state == IBV_QPS_INIT && attr->qp_state == IBV_QPS_RTR && mask == kRtr) ||
                     (pair.state == IBV_QPS_RTR && attr->qp_state == IBV_QPS_RTS && mask == kRts);
  if (!right) return misused("a queue pair's states in a wrong order, or without an attribute", EINVAL);
  if (attr->qp_state == IBV_QPS_INIT && attr->port_num != 2) return misused("a port that is down", EINVAL);
  if (attr->qp_state == IBV_QPS_RTR) {
    const ibv_gid want = gid_of(1);
    if (attr->ah_attr.is_global != 1 || attr->ah_attr.grh.sgid_index != 1 ||
        std::memcmp(attr->ah_attr.grh.dgid.raw, want.raw, sizeof want.raw) != 0)
      return misused("not the routable address", EINVAL);
    pair.destination = attr->dest_qp_num;
  }
  pair.state = attr->qp_state;
  return 0;
}
EXPORTED int ibv_destroy_qp(ibv_qp* qp) {
  library().pairs.erase(qp->qp_num);
  return 0;
}
EXPORTED const char* ibv_wc_status_str(ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "another error";
}
