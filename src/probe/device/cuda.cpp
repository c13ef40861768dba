// SPDX-License-Identifier: Apache-2.0
#include "probe/device/cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "base/try.hpp"
#include "probe/device/absent.hpp"
#include "probe/device/cuda_api.hpp"
#include "probe/device/cuda_kernel.hpp"
#include "probe/device/host_memory.hpp"
#include "probe/device/link_bound.hpp"
#include "probe/device/places.hpp"

namespace wherry::probe {
namespace {

enum class Memory : std::uint8_t { kDevice, kPinned, kPageable, kMapped };

struct CudaKind {
  const char* id;
  Memory from, to;
  bool kernel;
  Flow flow;  ///< that is accepted; of device to device it says nothing
};
constexpr std::array<CudaKind, 8> kCudaKinds{{
    {"cuda.h2d", Memory::kPinned, Memory::kDevice, false, Flow::kH2C},
    {"cuda.h2d.pageable", Memory::kPageable, Memory::kDevice, false, Flow::kH2C},
    {"cuda.d2h", Memory::kDevice, Memory::kPinned, false, Flow::kC2H},
    {"cuda.d2h.pageable", Memory::kDevice, Memory::kPageable, false, Flow::kC2H},
    {"cuda.d2d", Memory::kDevice, Memory::kDevice, false, Flow::kH2C},
    {"cuda.kernel-read", Memory::kMapped, Memory::kDevice, true, Flow::kH2C},
    {"cuda.kernel-write", Memory::kDevice, Memory::kMapped, true, Flow::kC2H},
    {"cuda.mapped", Memory::kMapped, Memory::kMapped, true, Flow::kBoth},
}};
constexpr unsigned kMostDepth = 256, kMostChannels = 32;
constexpr unsigned kBlockThreads = 256, kMostBlocks = 1024;
constexpr std::size_t kKernelUnit = 16;  // of its loads and stores

const char* name_of(Memory memory) {
  switch (memory) {
    case Memory::kDevice:
      return "GPU memory";
    case Memory::kPinned:
      return "pinned host memory";
    case Memory::kPageable:
      return "pageable host memory";
    case Memory::kMapped:
      return "mapped host memory";
  }
  return "";
}

/// One end's region.
struct End {
  Memory kind = Memory::kDevice;
  std::byte* host = nullptr;  ///< null: only the GPU reaches it
  CudaAddress device = 0;     ///< 0: only copies reach it
  HostMemory pageable;
};

class CudaPath final : public Path {
 public:
  CudaPath(PathInfo info, const CudaKind& kind, std::shared_ptr<const CudaApi> api, int device, std::string folder)
      : info_(std::move(info)), kind_(kind), cuda_(std::move(api)), device_(device), folder_(std::move(folder)) {}
  ~CudaPath() override { close(); }

  [[nodiscard]] const PathInfo& info() const override { return info_; }

  [[nodiscard]] Status accepts(const Shape& shape) const override {
    const auto unsupported = [&](const std::string& why) {
      return Status(StatusCode::kUnsupported, fmt::format("{}: {}", info_.id, why));
    };
    if (shape.flow != kind_.flow) return unsupported("the other direction is a path of its own");
    if (shape.depth > kMostDepth || shape.channels > kMostChannels)
      return unsupported(fmt::format("depth is at most {}, and streams are at most {}", kMostDepth, kMostChannels));
    if (shape.channels > shape.depth)
      return unsupported("a stream needs a transfer under way: depth is at least the channels");
    if (shape.notice == Notice::kInterrupt)
      return unsupported("polled or blocking: the driver decides about interrupts");
    return Places::plan(shape, rules()).status();
  }

  [[nodiscard]] Result<Bound> open(const Shape& shape) override {
    WHERRY_TRY(accepts(shape));
    close();
    opened_ = true;
    auto bound = set_up(shape);
    if (!bound) close();
    return bound;
  }

  void prepare(std::uint64_t seed) override {
    failed_ = fill(seed);
    under_way_.clear();
  }

  [[nodiscard]] bool try_post(unsigned slot) override {
    if (!failed_.ok()) return true;  // poll() says so
    if (std::find(under_way_.begin(), under_way_.end(), slot) != under_way_.end()) return false;
    const std::size_t offset = places_.take(slot);
    void* const stream = streams_[slot % streams_.size()];
    failed_ = start(offset, stream);
    if (failed_.ok()) failed_ = cuda_->check(cuda_->event_record(events_[slot], stream), "cuEventRecord");
    if (failed_.ok()) under_way_.push_back(slot);
    return true;
  }

  [[nodiscard]] Result<unsigned> poll(std::span<unsigned> done) override {
    WHERRY_TRY(Status(failed_));
    if (blocking_ && !under_way_.empty())
      WHERRY_TRY(cuda_->check(cuda_->event_synchronize(events_[under_way_.front()]), "cuEventSynchronize"));
    // A stream completes in order, so no transfer ends before an earlier one.
    std::uint32_t waiting = 0;
    unsigned found = 0;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < under_way_.size(); ++i) {
      const unsigned slot = under_way_[i];
      const std::uint32_t stream = std::uint32_t{1} << slot % streams_.size();
      bool ended = false;
      if ((waiting & stream) == 0 && found < done.size()) {
        const int result = cuda_->event_query(events_[slot]);
        if (result != CudaApi::kNotReady) WHERRY_TRY(cuda_->check(result, "cuEventQuery"));
        ended = result == CudaApi::kSuccess;
      }
      if (ended) {
        places_.ended(slot);
        done[found++] = slot;
      } else {
        waiting |= stream;
        under_way_[kept++] = slot;
      }
    }
    under_way_.resize(kept);
    return found;
  }

  [[nodiscard]] Status verify(std::uint64_t seed) override {
    WHERRY_TRY(Status(failed_));
    WHERRY_ASSIGN(const auto to, look(to_));
    WHERRY_TRY(places_.check(to, seed));
    WHERRY_ASSIGN(const auto from, look(from_));
    return places_.check_source(from, seed);
  }

  [[nodiscard]] std::span<std::byte> landing() override {
    return to_.host == nullptr ? std::span<std::byte>() : std::span(to_.host, places_.region_bytes());
  }
  [[nodiscard]] bool spoil(std::uint64_t at) override {
    if (to_.host != nullptr) return Path::spoil(at);
    const CudaAddress byte = to_.device + at % places_.region_bytes();
    if (cuda_->copy_to_host(image_.data(), byte, 1) != CudaApi::kSuccess) return false;
    image_.data()[0] ^= std::byte{0x40};
    return cuda_->copy_to_device(byte, image_.data(), 1) == CudaApi::kSuccess;
  }

  void close() noexcept override {
    if (!opened_) return;
    opened_ = false;
    if (context_ != nullptr) {
      for (void* stream : streams_) {
        (void)cuda_->stream_synchronize(stream);
        (void)cuda_->stream_destroy(stream);
      }
      for (void* event : events_) (void)cuda_->event_destroy(event);
      if (module_ != nullptr) (void)cuda_->module_unload(module_);
      release(from_);
      release(to_);
      (void)cuda_->set_current(nullptr);
      (void)cuda_->primary_release(handle_);
    }
    streams_.clear();
    events_.clear();
    under_way_.clear();
    module_ = context_ = nullptr;
    image_ = {};
  }

 private:
  [[nodiscard]] PlaceRules rules() const {
    return {.room = std::size_t{1} << 30,
            .guard = 4096,
            .unit = kind_.kernel ? kKernelUnit : 1,
            .spread = std::size_t{16} << 20};
  }

  Result<Bound> set_up(const Shape& shape) {
    WHERRY_ASSIGN(places_, Places::plan(shape, rules()));
    WHERRY_TRY(cuda_->check(cuda_->device_get(&handle_, device_), "cuDeviceGet"));
    WHERRY_TRY(cuda_->check(cuda_->primary_retain(&context_, handle_), "cuDevicePrimaryCtxRetain"));
    WHERRY_TRY(cuda_->check(cuda_->set_current(context_), "cuCtxSetCurrent"));
    WHERRY_TRY(make(from_, kind_.from));
    WHERRY_TRY(make(to_, kind_.to));
    WHERRY_ASSIGN(image_, HostMemory::make(places_.region_bytes()));
    blocking_ = shape.notice == Notice::kBlocking;
    const unsigned flags = CudaApi::kEventWithoutTiming | (blocking_ ? CudaApi::kEventBlocking : 0);
    events_.reserve(shape.depth);
    under_way_.reserve(shape.depth);
    for (unsigned i = 0; i < shape.channels; ++i) {
      void* stream = nullptr;
      WHERRY_TRY(cuda_->check(cuda_->stream_create(&stream, CudaApi::kStreamNonBlocking), "cuStreamCreate"));
      streams_.push_back(stream);
    }
    for (unsigned i = 0; i < shape.depth; ++i) {
      void* event = nullptr;
      WHERRY_TRY(cuda_->check(cuda_->event_create(&event, flags), "cuEventCreate"));
      events_.push_back(event);
    }
    if (kind_.kernel) {
      WHERRY_TRY(cuda_->check(cuda_->module_load(&module_, kCopyKernel), "cuModuleLoadData"));
      WHERRY_TRY(cuda_->check(cuda_->module_function(&function_, module_, "wherry_copy"), "cuModuleGetFunction"));
    }
    Bound bound = link_bound(folder_);
    if (kind_.from == Memory::kDevice && kind_.to == Memory::kDevice) bound = memory_bound();
    WHERRY_ASSIGN(const double own, own_bytes_per_s());
    bound.why += fmt::format("{}the GPU's own events: {:.2f} GB/s for transfers of {} bytes, one behind the other",
                             bound.why.empty() ? "" : "; ", own / 1e9, places_.bytes());
    return bound;
  }

  Status make(End& end, Memory kind) {
    const std::size_t bytes = places_.region_bytes();
    end.kind = kind;
    switch (kind) {
      case Memory::kDevice:
        return cuda_->check(cuda_->allocate(&end.device, bytes), "cuMemAlloc");
      case Memory::kPageable: {
        WHERRY_ASSIGN(end.pageable, HostMemory::make(bytes, false));
        end.host = end.pageable.data();
        return {};
      }
      case Memory::kPinned:
      case Memory::kMapped: {
        void* at = nullptr;
        const unsigned flags = CudaApi::kHostPortable | (kind == Memory::kMapped ? CudaApi::kHostMapped : 0);
        WHERRY_TRY(cuda_->check(cuda_->host_allocate(&at, bytes, flags), "cuMemHostAlloc"));
        end.host = static_cast<std::byte*>(at);
        if (kind == Memory::kMapped)
          return cuda_->check(cuda_->host_address(&end.device, at, 0), "cuMemHostGetDevicePointer");
        return {};
      }
    }
    return {StatusCode::kInternal, "unknown kind of memory"};
  }

  void release(End& end) noexcept {
    if (end.kind == Memory::kDevice && end.device != 0) (void)cuda_->release(end.device);
    if (end.kind != Memory::kPageable && end.host != nullptr) (void)cuda_->host_release(end.host);
    end = {};
  }

  Status start(std::size_t offset, void* stream) const {
    const std::size_t bytes = places_.bytes();
    if (kind_.kernel) {
      CudaAddress to = to_.device + offset, from = from_.device + offset;
      unsigned long long count = bytes;
      void* arguments[] = {&to, &from, &count};
      const auto pieces = static_cast<unsigned>(
          std::min<std::size_t>((bytes + kKernelUnit - 1) / kKernelUnit, std::size_t{kMostBlocks} * kBlockThreads));
      return cuda_->check(cuda_->launch(function_, (pieces + kBlockThreads - 1) / kBlockThreads, 1, 1, kBlockThreads, 1,
                                        1, 0, stream, arguments, nullptr),
                          "cuLaunchKernel");
    }
    if (from_.host != nullptr)
      return cuda_->check(cuda_->copy_to_device_async(to_.device + offset, from_.host + offset, bytes, stream),
                          "cuMemcpyHtoDAsync");
    if (to_.host != nullptr)
      return cuda_->check(cuda_->copy_to_host_async(to_.host + offset, from_.device + offset, bytes, stream),
                          "cuMemcpyDtoHAsync");
    return cuda_->check(cuda_->copy_device_async(to_.device + offset, from_.device + offset, bytes, stream),
                        "cuMemcpyDtoDAsync");
  }

  Status fill(std::uint64_t seed) {
    for (End* const end : {&from_, &to_}) {
      const std::span<std::byte> region(end->host != nullptr ? end->host : image_.data(), places_.region_bytes());
      if (end == &from_)
        places_.fill_source(region, seed);
      else
        places_.fill_destination(region, seed);
      if (end->host == nullptr)
        WHERRY_TRY(cuda_->check(cuda_->copy_to_device(end->device, region.data(), region.size()), "cuMemcpyHtoD"));
    }
    return {};
  }

  Result<std::span<const std::byte>> look(const End& end) {
    if (end.host != nullptr) return std::span<const std::byte>(end.host, places_.region_bytes());
    WHERRY_TRY(cuda_->check(cuda_->copy_to_host(image_.data(), end.device, places_.region_bytes()), "cuMemcpyDtoH"));
    return std::span<const std::byte>(image_.span());
  }

  /// Times several copies between two events of the GPU, without the host's share of the time.
  Result<double> own_bytes_per_s() {
    constexpr unsigned kTransfers = 8;
    std::array<void*, 2> marks{};
    float ms = 0;
    Status status;
    for (void*& mark : marks)
      if (status.ok()) status = cuda_->check(cuda_->event_create(&mark, 0), "cuEventCreate");
    const auto record = [&](unsigned which) {
      return cuda_->check(cuda_->event_record(marks[which], streams_[0]), "cuEventRecord");
    };
    if (status.ok())
      status = start(places_.offset_of_place(0), streams_[0]);  // the first one loads what is loaded late
    if (status.ok()) status = record(0);
    for (unsigned i = 0; i < kTransfers && status.ok(); ++i)
      status = start(places_.offset_of_place(i % places_.places()), streams_[0]);
    if (status.ok()) status = record(1);
    if (status.ok()) status = cuda_->check(cuda_->event_synchronize(marks[1]), "cuEventSynchronize");
    if (status.ok()) status = cuda_->check(cuda_->event_elapsed_ms(&ms, marks[0], marks[1]), "cuEventElapsedTime");
    for (void* const mark : marks)
      if (mark != nullptr) (void)cuda_->event_destroy(mark);
    WHERRY_TRY(std::move(status));
    return ms > 0 ? static_cast<double>(places_.bytes()) * kTransfers / (static_cast<double>(ms) * 1e-3) : 0.0;
  }

  /// The bound is half of the memory bus's rate (two words a clock), because each byte is read and written.
  Bound memory_bound() const {
    int khz = 0, bits = 0;
    if (cuda_->device_attribute(&khz, CudaApi::kMemoryClockKhz, handle_) != CudaApi::kSuccess ||
        cuda_->device_attribute(&bits, CudaApi::kMemoryBusBits, handle_) != CudaApi::kSuccess || khz <= 0 || bits <= 0)
      return {};
    return {.bytes_per_s = 2.0 * khz * 1e3 * bits / 8 / 2,
            .transfers_per_s = 0,
            .why = fmt::format("GPU memory: {} bits at 2 x {} MHz, each byte read and written", bits, khz / 1000)};
  }

  PathInfo info_;
  CudaKind kind_;
  std::shared_ptr<const CudaApi> cuda_;
  int device_;
  std::string folder_;  ///< of its PCI function
  Places places_;
  End from_, to_;
  HostMemory image_;
  std::vector<void*> streams_, events_;
  std::vector<unsigned> under_way_;  ///< slots, in the order of posting
  int handle_ = 0;
  void *context_ = nullptr, *module_ = nullptr, *function_ = nullptr;
  bool blocking_ = false, opened_ = false;
  Status failed_;
};

}  // namespace

std::vector<std::unique_ptr<Path>> cuda_paths(const DeviceSettings& settings) {
  auto api = CudaApi::load(settings.cuda_library);
  std::string why = settings.refusal("WHERRY_PROBE_CUDA", api ? "" : api.status().message()), name, folder;
  if (why.empty()) {
    int handle = 0;
    char text[256] = "";
    Status found = (*api)->check((*api)->device_get(&handle, settings.cuda_device), "cuDeviceGet");
    if (found.ok()) found = (*api)->check((*api)->device_name(text, sizeof text, handle), "cuDeviceGetName");
    name = text;
    if (found.ok()) found = (*api)->check((*api)->device_pci_bus_id(text, sizeof text, handle), "cuDeviceGetPCIBusId");
    if (!found.ok()) why = fmt::format("GPU {} (WHERRY_PROBE_CUDA): {}", settings.cuda_device, found.message());
    std::transform(text, text + std::strlen(text), text,
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    folder = fmt::format("{}/bus/pci/devices/{}", settings.sysfs, text);
  }
  std::vector<std::unique_ptr<Path>> paths;
  for (const CudaKind& kind : kCudaKinds) {
    PathInfo info{.id = kind.id,
                  .group = "cuda",
                  .from = name_of(kind.from),
                  .to = name_of(kind.to),
                  .initiator = Initiator::kDevice,
                  .absent = {}};
    if (!why.empty()) {
      paths.push_back(absent(std::move(info), why));
      continue;
    }
    for (std::string* const end : {&info.from, &info.to})
      if (*end == name_of(Memory::kDevice)) *end += fmt::format(" ({})", name);
    paths.push_back(std::make_unique<CudaPath>(std::move(info), kind, *api, settings.cuda_device, folder));
  }
  return paths;
}

}  // namespace wherry::probe
