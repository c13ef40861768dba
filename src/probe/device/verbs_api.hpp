// SPDX-License-Identifier: Apache-2.0
// libibverbs, loaded at run time. The build needs its header (Debian's libibverbs-dev): posting and
// polling are inline functions that call through tables in its structures, which are the binary interface.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <string>

#include "wherry/status.hpp"

namespace wherry::probe {

struct VerbsApi {
  /// kNotFound: the library does not exist. kVersionMismatch: it lacks a function. It is never unloaded.
  static Result<std::shared_ptr<const VerbsApi>> load(const std::string& library);

  decltype(&::ibv_get_device_list) get_device_list = nullptr;
  decltype(&::ibv_free_device_list) free_device_list = nullptr;
  decltype(&::ibv_get_device_name) device_name = nullptr;
  decltype(&::ibv_open_device) open_device = nullptr;
  decltype(&::ibv_close_device) close_device = nullptr;
  decltype(&::ibv_query_device) query_device = nullptr;
  /// Fills a struct ibv_port_attr, except its newest members.
  decltype(&::ibv_query_port) query_port = nullptr;
  decltype(&::ibv_query_gid) query_gid = nullptr;
  decltype(&::ibv_alloc_pd) alloc_pd = nullptr;
  decltype(&::ibv_dealloc_pd) dealloc_pd = nullptr;
  decltype(&::ibv_reg_mr) reg_mr = nullptr;
  decltype(&::ibv_dereg_mr) dereg_mr = nullptr;
  decltype(&::ibv_create_comp_channel) create_comp_channel = nullptr;
  decltype(&::ibv_destroy_comp_channel) destroy_comp_channel = nullptr;
  decltype(&::ibv_create_cq) create_cq = nullptr;
  decltype(&::ibv_destroy_cq) destroy_cq = nullptr;
  decltype(&::ibv_get_cq_event) get_cq_event = nullptr;
  decltype(&::ibv_ack_cq_events) ack_cq_events = nullptr;
  decltype(&::ibv_create_qp) create_qp = nullptr;
  decltype(&::ibv_modify_qp) modify_qp = nullptr;
  decltype(&::ibv_destroy_qp) destroy_qp = nullptr;
  decltype(&::ibv_wc_status_str) status_text = nullptr;
};

}  // namespace wherry::probe
