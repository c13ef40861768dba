// SPDX-License-Identifier: Apache-2.0
#include "probe/device/verbs_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

namespace wherry::probe {

Result<std::shared_ptr<const VerbsApi>> VerbsApi::load(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Status(StatusCode::kNotFound,
                  fmt::format("{} cannot be loaded: install libibverbs1 and ibverbs-providers", library));
  auto api = std::make_shared<VerbsApi>();
  const char* missing = nullptr;
  const auto get = [&](auto& function, const char* name) {
    void* const found = dlsym(handle, name);  // the default version, which is that of the header
    if (found == nullptr && missing == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  get(api->get_device_list, "ibv_get_device_list");
  get(api->free_device_list, "ibv_free_device_list");
  get(api->device_name, "ibv_get_device_name");
  get(api->open_device, "ibv_open_device");
  get(api->close_device, "ibv_close_device");
  get(api->query_device, "ibv_query_device");
  get(api->query_port, "ibv_query_port");
  get(api->query_gid, "ibv_query_gid");
  get(api->alloc_pd, "ibv_alloc_pd");
  get(api->dealloc_pd, "ibv_dealloc_pd");
  get(api->reg_mr, "ibv_reg_mr");
  get(api->dereg_mr, "ibv_dereg_mr");
  get(api->create_comp_channel, "ibv_create_comp_channel");
  get(api->destroy_comp_channel, "ibv_destroy_comp_channel");
  get(api->create_cq, "ibv_create_cq");
  get(api->destroy_cq, "ibv_destroy_cq");
  get(api->get_cq_event, "ibv_get_cq_event");
  get(api->ack_cq_events, "ibv_ack_cq_events");
  get(api->create_qp, "ibv_create_qp");
  get(api->modify_qp, "ibv_modify_qp");
  get(api->destroy_qp, "ibv_destroy_qp");
  get(api->status_text, "ibv_wc_status_str");
  if (missing != nullptr)
    return Status(StatusCode::kVersionMismatch, fmt::format("{} has no {}: it is too old", library, missing));
  return std::shared_ptr<const VerbsApi>(std::move(api));
}

}  // namespace wherry::probe
