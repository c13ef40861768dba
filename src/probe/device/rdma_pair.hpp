// SPDX-License-Identifier: Apache-2.0
// An open RDMA device with reliable queue pairs connected to each other, by the "InfiniBand Architecture
// Specification", volume 1, 10.3 (states of a queue pair) and rdma-core's manual page ibv_modify_qp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "probe/device/verbs_api.hpp"
#include "wherry/status.hpp"

namespace wherry::probe {

/// Two queue pairs of this process; each receives what the other sends.
struct RdmaPair {
  ibv_qp* near = nullptr;
  ibv_qp* far = nullptr;
};

/// For one thread. The destructor releases all resources.
class RdmaDevice {
 public:
  struct Options {
    std::string name;  ///< of the device; empty: the first with an active port
    std::string sysfs;
    unsigned pairs = 1;
    unsigned depth = 1;   ///< requests of a queue pair under way
    bool sleeps = false;  ///< wait() is used
  };
  /// kNotFound: no device, or no active port. kUnavailable: names the failed call and the reason.
  static Result<std::unique_ptr<RdmaDevice>> open(std::shared_ptr<const VerbsApi> verbs, const Options& options);
  RdmaDevice(const RdmaDevice&) = delete;
  RdmaDevice& operator=(const RdmaDevice&) = delete;
  ~RdmaDevice();

  [[nodiscard]] const std::vector<RdmaPair>& pairs() const noexcept { return pairs_; }
  [[nodiscard]] bool has_atomics() const noexcept { return atomics_; }
  /// Registers memory that both sides may read, write and swap, until the device is closed.
  Result<ibv_mr*> register_memory(std::span<std::byte> memory);
  /// Completions of requests, of all queue pairs. kUnavailable: the status of the first failed request.
  Result<unsigned> poll(std::span<ibv_wc> into);
  /// Waits until a further completion is possible. Call poll() first.
  Status wait();

 private:
  explicit RdmaDevice(std::shared_ptr<const VerbsApi> verbs) : verbs_(std::move(verbs)) {}
  Status find(const Options& options);
  Status choose_address(const std::string& sysfs);
  Status make_pairs(const Options& options);
  Status connect(ibv_qp* pair, std::uint32_t to) const;

  std::shared_ptr<const VerbsApi> verbs_;
  ibv_context* context_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::vector<RdmaPair> pairs_;
  std::vector<ibv_mr*> regions_;
  std::string name_;
  std::uint8_t port_ = 1;
  ibv_port_attr attributes_{};
  ibv_gid gid_{};
  std::uint8_t gid_index_ = 0, reads_ = 1;
  bool atomics_ = false, armed_ = false;
};

}  // namespace wherry::probe
