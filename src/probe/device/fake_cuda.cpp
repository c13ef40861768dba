// SPDX-License-Identifier: Apache-2.0
// For tests: a library with the part of CUDA's driver API that probe uses, on host memory.
// Written from NVIDIA's "CUDA Driver API" reference, not from cuda.cpp. The processor
// cannot access the GPU addresses of device memory or of mapped host memory. Work on a
// stream is done only when a call waits for it or asks again, and kernels run as PTX.
#include "probe/device/fake_cuda.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "probe/device/ptx_testing.hpp"

#define EXPORTED extern "C" [[gnu::visibility("default")]]

namespace {

using wherry::probe::testing_support::PtxKernel;
using Address = unsigned long long;
enum Code : int {
  kOk = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidContext = 201,
  kInvalidPtx = 218,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700
};

struct Event {
  unsigned flags = 0;
  bool recorded = false, happened = false;
  struct Stream* stream = nullptr;
  std::uint64_t moment = 0;
};
struct Stream {
  std::deque<std::function<int()>> queue;
};
struct Module {
  std::string text;
  std::vector<std::unique_ptr<PtxKernel>> kernels;
};
struct Memory {
  std::size_t bytes = 0;
  std::byte* storage = nullptr;
  unsigned flags = 0;
};

struct Driver {
  std::mutex mutex;
  bool initialised = false;
  int devices = 1, contexts = 0;
  std::map<Address, Memory> device, mapped;  // by address of the GPU
  std::map<std::byte*, Memory> pinned;
  std::set<std::unique_ptr<Stream>> streams;
  std::set<std::shared_ptr<Event>> events;  // shared with the streams in which they are recorded
  std::set<std::unique_ptr<Module>> modules;
  Address next_device = 0x7D00'0000'0000, next_mapped = 0x7E00'0000'0000;
  std::string misuse;
  unsigned flip = 0, fail = 0;
  int error = 0, sticky = 0;
  std::uint64_t work = 0, not_ready = 0, sleeps = 0, clock = 0;
  char context = 0;
};
Driver& driver() {
  static Driver one;
  return one;
}
thread_local void* current = nullptr;

int misused(const std::string& what, int code) {
  driver().misuse += what + "\n";
  return code;
}

/// Rules for every call; `call` runs while the lock is held.
template <typename Call>
int with(bool context, Call call) {
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  if (!d.initialised) return misused("a call before cuInit", kNotInitialized);
  if (d.fail != 0 && --d.fail == 0) return d.error;
  if (context && (current == nullptr || d.contexts == 0))
    return misused("a call without a current context", kInvalidContext);
  if (context && d.sticky != 0) return d.sticky;
  return call(d);
}

std::byte* find(const std::map<Address, Memory>& in, Address at, std::size_t bytes) {
  auto after = in.upper_bound(at);
  if (after == in.begin()) return nullptr;
  const auto& [first, memory] = *std::prev(after);
  return at - first <= memory.bytes && bytes <= memory.bytes - (at - first) ? memory.storage + (at - first) : nullptr;
}
/// The memory that a kernel or copy engine reaches at a GPU address.
std::byte* reach(Address at, std::size_t bytes) {
  std::byte* const found = find(driver().device, at, bytes);
  return found != nullptr ? found : find(driver().mapped, at, bytes);
}
/// The pinned memory that contains a host pointer. The end iterator: the pointer is pageable.
auto pinned_at(const void* at, std::size_t bytes) {
  auto& pinned = driver().pinned;
  for (auto one = pinned.begin(); one != pinned.end(); ++one) {
    const auto* const byte = static_cast<const std::byte*>(at);
    if (byte >= one->first && byte < one->first + one->second.bytes) {
      if (bytes > one->second.bytes - static_cast<std::size_t>(byte - one->first))
        misused("a copy leaves its pinned memory", 0);
      return one;
    }
  }
  return pinned.end();
}
bool is_device_address(const void* at) {
  const auto address = reinterpret_cast<Address>(at);
  return address >= 0x7D00'0000'0000 && address < 0x7F00'0000'0000 && reach(address, 1) != nullptr;
}

template <typename Things>
auto known(const Things& all, void* handle) -> decltype(all.begin()->get()) {
  for (const auto& one : all)
    if (one.get() == handle) return one.get();
  return nullptr;
}
template <typename Things>
bool forget(Things& all, void* handle) {
  for (auto one = all.begin(); one != all.end(); ++one)
    if (one->get() == handle) return all.erase(one), true;
  return false;
}

int copy_now(std::byte* to, const std::byte* from, std::size_t bytes) {
  Driver& d = driver();
  if (to == nullptr || from == nullptr) return d.sticky = kIllegalAddress;
  std::memmove(to, from, bytes);
  ++d.work;
  if (d.flip != 0 && --d.flip == 0) to[bytes - 1] ^= std::byte{1};
  return kOk;
}

int step(Stream& stream) {
  if (stream.queue.empty()) return kOk;
  const auto one = std::move(stream.queue.front());
  stream.queue.pop_front();
  return one();
}
int finish(Stream& stream) {
  while (!stream.queue.empty())
    if (const int result = step(stream); result != kOk) return result;
  return kOk;
}

/// An asynchronous copy. It finds both ends only when it runs, so memory that was freed meanwhile is detected.
int enqueue(void* handle, std::size_t bytes, const std::function<std::byte*()>& to,
            const std::function<const std::byte*()>& from, bool at_once) {
  Stream* const stream = known(driver().streams, handle);
  if (stream == nullptr) return misused("an unknown stream", kInvalidHandle);
  if (bytes == 0) return kInvalidValue;
  stream->queue.emplace_back([=] { return copy_now(to(), from(), bytes); });
  return at_once ? finish(*stream) : kOk;
}

}  // namespace

EXPORTED void wherry_fake_reset(int devices) {
  Driver& d = driver();
  const std::lock_guard lock(d.mutex);
  for (auto& [address, memory] : d.device) delete[] memory.storage;
  for (auto& [host, memory] : d.pinned) ::operator delete[](host, std::align_val_t(4096));
  d.device.clear();
  d.mapped.clear();
  d.pinned.clear();
  d.streams.clear();
  d.events.clear();
  d.modules.clear();
  d.initialised = false;
  d.devices = devices;
  d.contexts = d.error = d.sticky = 0;
  d.flip = d.fail = 0;
  d.work = d.not_ready = d.sleeps = 0;
  d.misuse.clear();
  current = nullptr;
}
EXPORTED void wherry_fake_flip(unsigned number) { driver().flip = number; }
EXPORTED void wherry_fake_fail(unsigned number, int error) {
  driver().fail = number;
  driver().error = error;
}
EXPORTED unsigned wherry_fake_held() {
  const Driver& d = driver();
  return static_cast<unsigned>(d.device.size() + d.pinned.size() + d.streams.size() + d.events.size() +
                               d.modules.size()) +
         static_cast<unsigned>(d.contexts);
}
EXPORTED const char* wherry_fake_misuse() { return driver().misuse.c_str(); }
EXPORTED std::uint64_t wherry_fake_work() { return driver().work; }
EXPORTED std::uint64_t wherry_fake_not_ready() { return driver().not_ready; }
EXPORTED std::uint64_t wherry_fake_sleeps() { return driver().sleeps; }

EXPORTED int cuInit(unsigned flags) {
  if (flags != 0) return kInvalidValue;
  driver().initialised = true;
  return driver().devices == 0 ? kNoDevice : kOk;
}
EXPORTED int cuGetErrorName(int error, const char** name) {
  static const std::map<int, const char*> kNames{{0, "CUDA_SUCCESS"},
                                                 {1, "CUDA_ERROR_INVALID_VALUE"},
                                                 {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                 {100, "CUDA_ERROR_NO_DEVICE"},
                                                 {101, "CUDA_ERROR_INVALID_DEVICE"},
                                                 {201, "CUDA_ERROR_INVALID_CONTEXT"},
                                                 {400, "CUDA_ERROR_INVALID_HANDLE"},
                                                 {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = kNames.find(error);
  if (found == kNames.end()) return *name = nullptr, kInvalidValue;
  *name = found->second;
  return kOk;
}
EXPORTED int cuDeviceGetCount(int* count) {
  return with(false, [&](Driver& d) { return *count = d.devices, kOk; });
}
EXPORTED int cuDeviceGet(int* device, int ordinal) {
  return with(false, [&](Driver& d) { return ordinal < d.devices ? (*device = ordinal, kOk) : kInvalidDevice; });
}
EXPORTED int cuDeviceGetName(char* name, int length, int) {
  return with(false,
              [&](Driver&) { return std::snprintf(name, static_cast<std::size_t>(length), "stand-in GPU"), kOk; });
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  return with(false, [&](Driver&) {
    return attribute == 36 ? (*value = 1'000'000, kOk) : attribute == 37 ? (*value = 4096, kOk) : kInvalidValue;
  });
}
EXPORTED int cuDeviceGetPCIBusId(char* id, int length, int) {
  return with(false, [&](Driver&) { return std::snprintf(id, static_cast<std::size_t>(length), "0000:04:00.0"), kOk; });
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int) {
  return with(false, [&](Driver& d) { return ++d.contexts, *context = &d.context, kOk; });
}
EXPORTED int cuDevicePrimaryCtxRelease_v2(int) {
  return with(false, [&](Driver& d) {
    return d.contexts == 0 ? misused("a context released too often", kInvalidContext) : (--d.contexts, kOk);
  });
}
EXPORTED int cuCtxSetCurrent(void* context) {
  return with(false, [&](Driver&) { return current = context, kOk; });
}
EXPORTED int cuMemAlloc_v2(Address* at, std::size_t bytes) {
  return with(true, [&](Driver& d) {
    if (bytes == 0) return kInvalidValue;
    *at = d.next_device;
    d.device[*at] = {.bytes = bytes, .storage = new std::byte[bytes]{}};
    d.next_device += (bytes + 511) / 512 * 512 + 4096;
    return kOk;
  });
}
EXPORTED int cuMemFree_v2(Address at) {
  return with(true, [&](Driver& d) {
    const auto found = d.device.find(at);
    if (found == d.device.end()) return Code(misused("cuMemFree of what was not allocated", kInvalidValue));
    delete[] found->second.storage;
    d.device.erase(found);
    return kOk;
  });
}
EXPORTED int cuMemHostAlloc(void** at, std::size_t bytes, unsigned flags) {
  return with(true, [&](Driver& d) {
    if (bytes == 0 || flags > 7) return kInvalidValue;
    auto* const memory = static_cast<std::byte*>(::operator new[](bytes, std::align_val_t(4096)));
    *at = memory;
    d.pinned[memory] = {.bytes = bytes, .storage = memory, .flags = flags};
    if ((flags & 2) != 0) {  // CU_MEMHOSTALLOC_DEVICEMAP
      d.mapped[d.next_mapped] = {.bytes = bytes, .storage = memory};
      d.next_mapped += (bytes + 4095) / 4096 * 4096 + 4096;
    }
    return kOk;
  });
}
EXPORTED int cuMemFreeHost(void* at) {
  return with(true, [&](Driver& d) {
    const auto found = d.pinned.find(static_cast<std::byte*>(at));
    if (found == d.pinned.end()) return Code(misused("cuMemFreeHost of what was not allocated", kInvalidValue));
    std::erase_if(d.mapped, [&](const auto& one) { return one.second.storage == at; });
    d.pinned.erase(found);
    ::operator delete[](static_cast<std::byte*>(at), std::align_val_t(4096));
    return kOk;
  });
}
EXPORTED int cuMemHostGetDevicePointer_v2(Address* address, void* at, unsigned flags) {
  return with(true, [&](Driver& d) {
    if (flags != 0) return kInvalidValue;
    for (const auto& [first, memory] : d.mapped)
      if (memory.storage == at) return *address = first, kOk;
    return Code(misused("cuMemHostGetDevicePointer of memory that is not mapped", kInvalidValue));
  });
}
EXPORTED int cuMemcpyHtoD_v2(Address to, const void* from, std::size_t bytes) {
  return with(true, [&](Driver& d) {
    std::byte* const at = find(d.device, to, bytes);
    if (at == nullptr || is_device_address(from))
      return Code(misused("cuMemcpyHtoD: an end is elsewhere", kInvalidValue));
    std::memcpy(at, from, bytes);
    return kOk;
  });
}
EXPORTED int cuMemcpyDtoH_v2(void* to, Address from, std::size_t bytes) {
  return with(true, [&](Driver& d) {
    const std::byte* const at = find(d.device, from, bytes);
    if (at == nullptr || is_device_address(to))
      return Code(misused("cuMemcpyDtoH: an end is elsewhere", kInvalidValue));
    std::memcpy(to, at, bytes);
    return kOk;
  });
}
EXPORTED int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t bytes, void* stream) {
  return with(true, [&](Driver& d) {
    if (find(d.device, to, bytes) == nullptr || is_device_address(from))
      return misused("cuMemcpyHtoDAsync: an end is elsewhere", kInvalidValue);
    const bool pageable = pinned_at(from, bytes) == d.pinned.end();  // the call returns when it has read the memory
    return enqueue(
        stream, bytes, [=] { return find(driver().device, to, bytes); },
        [=] { return static_cast<const std::byte*>(from); }, pageable);
  });
}
EXPORTED int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t bytes, void* stream) {
  return with(true, [&](Driver& d) {
    if (find(d.device, from, bytes) == nullptr || is_device_address(to))
      return misused("cuMemcpyDtoHAsync: an end is elsewhere", kInvalidValue);
    const bool pageable = pinned_at(to, bytes) == d.pinned.end();
    return enqueue(
        stream, bytes, [=] { return static_cast<std::byte*>(to); }, [=] { return find(driver().device, from, bytes); },
        pageable);
  });
}
EXPORTED int cuMemcpyDtoDAsync_v2(Address to, Address from, std::size_t bytes, void* stream) {
  return with(true, [&](Driver&) {
    if (reach(to, bytes) == nullptr || reach(from, bytes) == nullptr)
      return misused("cuMemcpyDtoDAsync: an end is elsewhere", kInvalidValue);
    return enqueue(stream, bytes, [=] { return reach(to, bytes); }, [=] { return reach(from, bytes); }, false);
  });
}
EXPORTED int cuStreamCreate(void** stream, unsigned flags) {
  return with(true, [&](Driver& d) {
    return flags > 1 ? kInvalidValue : (*stream = d.streams.insert(std::make_unique<Stream>()).first->get(), kOk);
  });
}
EXPORTED int cuStreamSynchronize(void* stream) {
  return with(true, [&](Driver& d) {
    Stream* const found = known(d.streams, stream);
    return found == nullptr ? misused("cuStreamSynchronize of no stream", kInvalidHandle) : finish(*found);
  });
}
EXPORTED int cuStreamDestroy_v2(void* stream) {
  return with(true, [&](Driver& d) {
    Stream* const found = known(d.streams, stream);
    if (found != nullptr && !found->queue.empty()) misused("a stream was destroyed with work in it", 0);
    return forget(d.streams, stream) ? 0 : misused("cuStreamDestroy of no stream", kInvalidHandle);
  });
}
EXPORTED int cuEventCreate(void** event, unsigned flags) {
  return with(true, [&](Driver& d) {
    if (flags > 3) return kInvalidValue;
    auto made = std::make_shared<Event>();
    made->flags = flags;
    *event = d.events.insert(std::move(made)).first->get();
    return kOk;
  });
}
EXPORTED int cuEventRecord(void* event, void* stream) {
  return with(true, [&](Driver& d) {
    Event* const found = known(d.events, event);
    Stream* const on = known(d.streams, stream);
    if (found == nullptr || on == nullptr) return misused("cuEventRecord of no event or stream", kInvalidHandle);
    if (found->recorded && !found->happened) misused("an event was recorded again before it happened", 0);
    found->recorded = true;
    found->happened = false;
    found->stream = on;
    const auto owner =
        std::find_if(d.events.begin(), d.events.end(), [&](const auto& one) { return one.get() == found; });
    on->queue.emplace_back([one = *owner] {
      one->happened = true;
      one->moment = driver().clock += 1000;  // microseconds
      return 0;
    });
    return 0;
  });
}
EXPORTED int cuEventQuery(void* event) {
  return with(true, [&](Driver& d) -> int {
    Event* const found = known(d.events, event);
    if (found == nullptr) return misused("cuEventQuery of no event", kInvalidHandle);
    if (!found->recorded || found->happened) return kOk;
    ++d.not_ready;
    if (const int result = step(*found->stream); result != kOk) return result;
    return kNotReady;  // also if it happened just now: a question takes time
  });
}
EXPORTED int cuEventSynchronize(void* event) {
  return with(true, [&](Driver& d) -> int {
    Event* const found = known(d.events, event);
    if (found == nullptr) return misused("cuEventSynchronize of no event", kInvalidHandle);
    if ((found->flags & 1) != 0) ++d.sleeps;
    while (found->recorded && !found->happened)
      if (const int result = step(*found->stream); result != kOk) return result;
    return kOk;
  });
}
EXPORTED int cuEventElapsedTime(float* ms, void* from, void* to) {
  return with(true, [&](Driver& d) -> int {
    const Event *const first = known(d.events, from), *const last = known(d.events, to);
    if (first == nullptr || last == nullptr || (first->flags & 2) != 0 || (last->flags & 2) != 0)
      return misused("cuEventElapsedTime of events without timing", kInvalidHandle);
    if (!first->happened || !last->happened) return kNotReady;
    *ms = static_cast<float>(last->moment - first->moment) / 1000;
    return kOk;
  });
}
EXPORTED int cuEventDestroy_v2(void* event) {
  return with(true, [&](Driver& d) {
    return forget(d.events, event) ? 0 : misused("cuEventDestroy of no event", kInvalidHandle);
  });
}
EXPORTED int cuModuleLoadData(void** module, const void* image) {
  return with(true, [&](Driver& d) {
    auto made = std::make_unique<Module>();
    made->text = static_cast<const char*>(image);
    *module = d.modules.insert(std::move(made)).first->get();
    return kOk;
  });
}
EXPORTED int cuModuleGetFunction(void** function, void* module, const char* name) {
  return with(true, [&](Driver& d) -> int {
    Module* const found = known(d.modules, module);
    if (found == nullptr) return misused("cuModuleGetFunction of no module", kInvalidHandle);
    auto kernel = std::make_unique<PtxKernel>(found->text, name);
    if (!kernel->error().empty()) return misused(kernel->error(), kNotFound);
    *function = kernel.get();
    found->kernels.push_back(std::move(kernel));
    return kOk;
  });
}
EXPORTED int cuModuleUnload(void* module) {
  return with(true, [&](Driver& d) {
    return forget(d.modules, module) ? 0 : misused("cuModuleUnload of no module", kInvalidHandle);
  });
}
EXPORTED int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned, void* stream, void** parameters, void** extra) {
  return with(true, [&](Driver& d) -> int {
    const PtxKernel* kernel = nullptr;
    for (const auto& module : d.modules)
      for (const auto& one : module->kernels)
        if (one.get() == function) kernel = one.get();
    Stream* const on = known(d.streams, stream);
    if (kernel == nullptr || on == nullptr) return misused("cuLaunchKernel of no function or stream", kInvalidHandle);
    if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1 || extra != nullptr)
      return misused("cuLaunchKernel with a wrong grid", kInvalidValue);
    std::vector<std::uint64_t> arguments(kernel->parameters());  // copied by the call
    for (std::size_t i = 0; i < arguments.size(); ++i) std::memcpy(&arguments[i], parameters[i], 8);
    on->queue.emplace_back([=, &d] {
      ++d.work;
      const int result = kernel->run(gx, bx, arguments, reach);
      if (result != kOk) return d.sticky = result;
      if (d.flip != 0 && --d.flip == 0) *reach(arguments.at(0) + arguments.at(2) - 1, 1) ^= std::byte{1};
      return 0;
    });
    return kOk;
  });
}
