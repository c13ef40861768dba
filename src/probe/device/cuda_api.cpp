// SPDX-License-Identifier: Apache-2.0
#include "probe/device/cuda_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/try.hpp"

namespace wherry::probe {

Result<std::shared_ptr<const CudaApi>> CudaApi::load(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Status(StatusCode::kNotFound,
                  fmt::format("{} cannot be loaded: needs an NVIDIA GPU and its driver", library));
  auto api = std::make_shared<CudaApi>();
  const char* missing = nullptr;
  const auto get = [&](auto& function, const char* name) {
    void* const found = dlsym(handle, name);
    if (found == nullptr && missing == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  get(api->init, "cuInit");
  get(api->error_name, "cuGetErrorName");
  get(api->device_count, "cuDeviceGetCount");
  get(api->device_get, "cuDeviceGet");
  get(api->device_name, "cuDeviceGetName");
  get(api->device_attribute, "cuDeviceGetAttribute");
  get(api->device_pci_bus_id, "cuDeviceGetPCIBusId");
  get(api->primary_retain, "cuDevicePrimaryCtxRetain");
  get(api->primary_release, "cuDevicePrimaryCtxRelease_v2");
  get(api->set_current, "cuCtxSetCurrent");
  get(api->allocate, "cuMemAlloc_v2");
  get(api->release, "cuMemFree_v2");
  get(api->host_allocate, "cuMemHostAlloc");
  get(api->host_release, "cuMemFreeHost");
  get(api->host_address, "cuMemHostGetDevicePointer_v2");
  get(api->copy_to_device, "cuMemcpyHtoD_v2");
  get(api->copy_to_host, "cuMemcpyDtoH_v2");
  get(api->copy_to_device_async, "cuMemcpyHtoDAsync_v2");
  get(api->copy_to_host_async, "cuMemcpyDtoHAsync_v2");
  get(api->copy_device_async, "cuMemcpyDtoDAsync_v2");
  get(api->stream_create, "cuStreamCreate");
  get(api->stream_synchronize, "cuStreamSynchronize");
  get(api->stream_destroy, "cuStreamDestroy_v2");
  get(api->event_create, "cuEventCreate");
  get(api->event_record, "cuEventRecord");
  get(api->event_query, "cuEventQuery");
  get(api->event_synchronize, "cuEventSynchronize");
  get(api->event_elapsed_ms, "cuEventElapsedTime");
  get(api->event_destroy, "cuEventDestroy_v2");
  get(api->module_load, "cuModuleLoadData");
  get(api->module_function, "cuModuleGetFunction");
  get(api->module_unload, "cuModuleUnload");
  get(api->launch, "cuLaunchKernel");
  if (missing != nullptr)
    return Status(StatusCode::kVersionMismatch, fmt::format("{} has no {}: the driver is too old", library, missing));
  WHERRY_TRY(api->check(api->init(0), "cuInit"));
  int count = 0;
  WHERRY_TRY(api->check(api->device_count(&count), "cuDeviceGetCount"));
  if (count == 0) return Status(StatusCode::kUnavailable, fmt::format("{} finds no GPU", library));
  return std::shared_ptr<const CudaApi>(std::move(api));
}

Status CudaApi::check(int result, const char* call) const {
  if (result == kSuccess) return {};
  const char* name = nullptr;
  if (error_name(result, &name) != kSuccess || name == nullptr) name = "an unknown error";
  return {StatusCode::kUnavailable, fmt::format("{}: {} ({})", call, name, result)};
}

}  // namespace wherry::probe
