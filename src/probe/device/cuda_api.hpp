// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA's driver API that probe uses, loaded at run time. The build needs no part of CUDA. Names,
// signatures and numbers are those of NVIDIA's "CUDA Driver API" reference. Its binary interface is stable: a function
// that changes gets a new name (_v2).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "wherry/status.hpp"

namespace wherry::probe {

using CudaAddress = unsigned long long;  // CUdeviceptr

struct CudaApi {
  // Values of CUresult, CUevent_flags, CUstream_flags, CU_MEMHOSTALLOC_*, CUdevice_attribute.
  static constexpr int kSuccess = 0, kNotReady = 600;
  static constexpr unsigned kEventBlocking = 1, kEventWithoutTiming = 2, kStreamNonBlocking = 1;
  static constexpr unsigned kHostPortable = 1, kHostMapped = 2;
  static constexpr int kMemoryClockKhz = 36, kMemoryBusBits = 37;

  /// Loads and initialises the driver, which takes hundreds of milliseconds with a GPU. The library is never unloaded.
  /// kNotFound: the library does not exist. kVersionMismatch: it lacks a function. kUnavailable: it finds no GPU.
  static Result<std::shared_ptr<const CudaApi>> load(const std::string& library);
  /// Ok, or kUnavailable with the call's name and the error's name.
  [[nodiscard]] Status check(int result, const char* call) const;

  int (*init)(unsigned) = nullptr;
  int (*error_name)(int, const char**) = nullptr;
  int (*device_count)(int*) = nullptr;
  int (*device_get)(int*, int) = nullptr;
  int (*device_name)(char*, int, int) = nullptr;
  int (*device_attribute)(int*, int, int) = nullptr;
  int (*device_pci_bus_id)(char*, int, int) = nullptr;
  int (*primary_retain)(void**, int) = nullptr;
  int (*primary_release)(int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*allocate)(CudaAddress*, std::size_t) = nullptr;
  int (*release)(CudaAddress) = nullptr;
  int (*host_allocate)(void**, std::size_t, unsigned) = nullptr;
  int (*host_release)(void*) = nullptr;
  int (*host_address)(CudaAddress*, void*, unsigned) = nullptr;
  int (*copy_to_device)(CudaAddress, const void*, std::size_t) = nullptr;
  int (*copy_to_host)(void*, CudaAddress, std::size_t) = nullptr;
  int (*copy_to_device_async)(CudaAddress, const void*, std::size_t, void*) = nullptr;
  int (*copy_to_host_async)(void*, CudaAddress, std::size_t, void*) = nullptr;
  int (*copy_device_async)(CudaAddress, CudaAddress, std::size_t, void*) = nullptr;
  int (*stream_create)(void**, unsigned) = nullptr;
  int (*stream_synchronize)(void*) = nullptr;
  int (*stream_destroy)(void*) = nullptr;
  int (*event_create)(void**, unsigned) = nullptr;
  int (*event_record)(void*, void*) = nullptr;
  int (*event_query)(void*) = nullptr;
  int (*event_synchronize)(void*) = nullptr;
  int (*event_elapsed_ms)(float*, void*, void*) = nullptr;
  int (*event_destroy)(void*) = nullptr;
  int (*module_load)(void**, const void*) = nullptr;
  int (*module_function)(void**, void*, const char*) = nullptr;
  int (*module_unload)(void*) = nullptr;
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = nullptr;
};

}  // namespace wherry::probe
