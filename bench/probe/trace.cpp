// SPDX-License-Identifier: Apache-2.0
// route_trace: simulates what an agent's loads and stores do to caches.
//
// The router and the work around it (agent_work.hpp) are compiled with -fsanitize=thread and linked without its
// library: the compiler puts a call before each of their loads and stores. It calls one of the functions below, which
// feed the cache model (cache_model.hpp). So the addresses are those of the real routing kernel, compiled by the same
// compiler, except that accesses to registers and the stack are missing.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "base/command_line.hpp"
#include "base/cpu.hpp"
#include "probe/agent_work.hpp"
#include "probe/cache_model.hpp"

namespace {

wherry::bench::CacheModel* g_model = nullptr;  // null: nobody listens

/// Reports an access. g_model is null meanwhile, as the model may share instrumented code of the standard library.
template <typename Tell>
void tell(Tell access) noexcept {
  wherry::bench::CacheModel* const model = g_model;
  if (model == nullptr) return;
  g_model = nullptr;
  access(*model);
  g_model = model;
}
void loaded(const void* at, std::size_t bytes) noexcept {
  tell([=](wherry::bench::CacheModel& model) { model.load(reinterpret_cast<std::uintptr_t>(at), bytes); });
}
void stored(const void* at, std::size_t bytes) noexcept {
  tell([=](wherry::bench::CacheModel& model) { model.store(reinterpret_cast<std::uintptr_t>(at), bytes); });
}

}  // namespace

// The functions that the compiler calls (gcc/tsan.cc and sanitizer.def, LLVM's ThreadSanitizer.cpp). The compiler sets
// their names. NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-identifier-naming)
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** at, void*) { stored(static_cast<const void*>(at), sizeof *at); }
void __tsan_vptr_read(void** at) { loaded(static_cast<const void*>(at), sizeof *at); }
void __tsan_read_range(void* at, std::size_t bytes) { loaded(at, bytes); }
void __tsan_write_range(void* at, std::size_t bytes) { stored(at, bytes); }
#define WHERRY_ACCESS(BYTES)                                         \
  void __tsan_read##BYTES(void* at) { loaded(at, BYTES); }           \
  void __tsan_write##BYTES(void* at) { stored(at, BYTES); }          \
  void __tsan_unaligned_read##BYTES(void* at) { loaded(at, BYTES); } \
  void __tsan_unaligned_write##BYTES(void* at) { stored(at, BYTES); }
WHERRY_ACCESS(1)
WHERRY_ACCESS(2)
WHERRY_ACCESS(4)
WHERRY_ACCESS(8)
WHERRY_ACCESS(16)
#undef WHERRY_ACCESS
// All code runs in one thread, so the memory order does not matter.
#define WHERRY_ATOMIC(BITS, TYPE)                                           \
  TYPE __tsan_atomic##BITS##_load(const volatile TYPE* at, int) {           \
    loaded(const_cast<const TYPE*>(at), sizeof *at);                        \
    return *at;                                                             \
  }                                                                         \
  void __tsan_atomic##BITS##_store(volatile TYPE* at, TYPE value, int) {    \
    stored(const_cast<const TYPE*>(at), sizeof *at);                        \
    *at = value;                                                            \
  }                                                                         \
  TYPE __tsan_atomic##BITS##_exchange(volatile TYPE* at, TYPE value, int) { \
    stored(const_cast<const TYPE*>(at), sizeof *at);                        \
    const TYPE before = *at;                                                \
    *at = value;                                                            \
    return before;                                                          \
  }                                                                         \
  TYPE __tsan_atomic##BITS##_fetch_or(volatile TYPE* at, TYPE value, int) { \
    stored(const_cast<const TYPE*>(at), sizeof *at);                        \
    const TYPE before = *at;                                                \
    *at = before | value;                                                   \
    return before;                                                          \
  }
WHERRY_ATOMIC(32, std::uint32_t)
WHERRY_ATOMIC(64, std::uint64_t)
#undef WHERRY_ATOMIC
// The compiler leaves these as calls to the C library, and the linker redirects them here (--wrap).
void* __real_memcpy(void* to, const void* from, std::size_t bytes);
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  loaded(from, bytes);
  stored(to, bytes);
  return __real_memcpy(to, from, bytes);
}
}
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses,readability-identifier-naming)

namespace wherry {

// The router's copy of long messages. The copy of base/copy.cpp has an instruction whose accesses are not reported. So
// CMakeLists.txt renames copy_to_other_core to this in the router.
void copy_that_tells(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
void copy_that_tells(std::byte* to, const std::byte* from, std::size_t bytes) noexcept { std::memcpy(to, from, bytes); }

}  // namespace wherry

namespace wherry::bench {
namespace {

struct Options {
  std::string system = "this";
  std::vector<std::string> levels;  // "bytes:ways"
  bool into_cache = false, whole = false;
  std::size_t buffer_bytes = std::size_t{1} << 20, warm_bytes = 0, bytes = std::size_t{1} << 20;
  std::uint32_t payload = 8;
};

CacheSystem system_of(const Options& options) {
  if (!options.levels.empty()) {
    CacheSystem found{"given", {}, "--level"};
    for (const std::string& level : options.levels) {
      const std::size_t colon = level.find(':');
      if (colon == std::string::npos) throw std::runtime_error("--level wants BYTES:WAYS, not " + level);
      found.levels.push_back(
          {std::stoul(level.substr(0, colon)), static_cast<unsigned>(std::stoul(level.substr(colon + 1)))});
      if (!found.levels.back().valid()) throw std::runtime_error("--level " + level + ": lines do not fill its ways");
    }
    return found;
  }
  if (options.system == "this") {
    CacheSystem found = this_machine(allowed_cores().front());
    if (found.levels.empty()) throw std::runtime_error("this machine's caches are not known: " + found.source);
    return found;
  }
  for (const CacheSystem& one : paper_systems())
    if (one.name == options.system) return one;
  throw std::runtime_error("--system " + options.system + ": this, xeon_6326 or bluefield_3 is expected");
}

AgentShape shape_of(const Options& options) {
  AgentShape shape;
  shape.payload = options.payload;
  const std::size_t each = std::size_t{shape.inputs + shape.lanes} * shape.ring.buffer_bytes;
  shape.ring.buffers = static_cast<std::uint32_t>(std::bit_floor(options.buffer_bytes / each));
  if (!shape.ring.valid() || shape.ring.buffers < 4)
    throw std::runtime_error("--buffer-bytes: 1 MiB to 256 MiB are expected");
  return shape;
}

/// Routes one buffer of every input at a time, until `bytes` bytes are done. `whole`: also counts the hops' accesses.
std::size_t route_some(AgentWork& work, CacheModel& model, const Options& options, std::size_t bytes) {
  std::size_t routed = 0;
  while (routed < bytes) {
    if (options.whole) g_model = &model;
    work.fill(1, [&](AgentWork::Filled part) {
      // A device, or another core through the last level, writes the buffers of a ring.
      if (!options.whole) model.deliver(reinterpret_cast<std::uintptr_t>(part.at), part.bytes, options.into_cache);
    });
    g_model = &model;
    routed += work.route();
    if (!options.whole) g_model = nullptr;
    work.drain();  // a device that reads takes no line out of a cache
    g_model = nullptr;
  }
  return routed;
}

nlohmann::ordered_json run(const Options& options) {
  const CacheSystem system = system_of(options);
  const AgentShape shape = shape_of(options);
  AgentWork work(shape, 1);
  CacheModel model(system.levels);
  route_some(work, model, options, options.warm_bytes);
  model.count_anew();
  const std::size_t routed = route_some(work, model, options, options.bytes);
  if (!work.complete()) throw std::logic_error("messages were lost");
  nlohmann::ordered_json out = {{"system", system.name},
                                {"source", system.source},
                                {"into_cache", options.into_cache},
                                {"buffer_bytes", shape.buffer_bytes()},
                                {"payload", shape.payload},
                                {"routed_bytes", routed}};
  for (std::size_t i = 0; i < system.levels.size(); ++i) {
    const CacheCounts::Level& counts = model.counts().levels[i];
    out["levels"].push_back({{"bytes", system.levels[i].bytes},
                             {"ways", system.levels[i].ways},
                             {"loads", counts.loads},
                             {"load_misses", counts.load_misses},
                             {"stores", counts.stores},
                             {"store_misses", counts.store_misses}});
  }
  out["written_back"] = model.counts().written_back;
  return out;
}

/// Each system with and without direct cache access, with rings that fit its caches and rings of twice its last level.
nlohmann::ordered_json run_all(bool quick) {
  nlohmann::ordered_json out = {{"runs", nlohmann::ordered_json::array()}, {"absent", ""}};
  for (const char* name : {"this", "xeon_6326", "bluefield_3"}) {
    Options options;
    options.system = name;
    if (options.system == "this") {
      const CacheSystem here = this_machine(allowed_cores().front());
      if (here.levels.empty()) {
        out["absent"] = here.source;
        continue;
      }
    }
    const std::size_t last = system_of(options).levels.back().bytes;
    options.payload = quick ? 56 : 8;  // a message a line: the same misses, a quarter of the accesses
    // At most 256 MiB, the limit of rings with 32 KiB buffers.
    for (const std::size_t buffers :
         {std::size_t{1} << 20, std::min(std::bit_ceil(2 * last), std::size_t{256} << 20)}) {
      for (const bool into_cache : {false, true}) {
        options.buffer_bytes = buffers;
        options.into_cache = into_cache;
        options.warm_bytes = buffers;  // inputs are half of them: each buffer has been used twice
        options.bytes = std::min<std::size_t>(quick ? 8 << 20 : 32 << 20, buffers);
        out["runs"].push_back(run(options));
      }
    }
  }
  return out;
}

}  // namespace
}  // namespace wherry::bench

int main(int argc, char** argv) {
  using namespace wherry::bench;
  CLI::App app(
      "Simulates the caches under the router of an agent: one run, which it prints as JSON, or with --json all.");
  Options options;
  std::string json;
  bool quick = false;
  app.add_option("--json", json, "the file for all systems, with and without direct cache access");
  app.add_flag("--quick", quick, "with --json: fewer bytes");
  app.add_option("--system", options.system, "this, xeon_6326 or bluefield_3");
  app.add_option("--level", options.levels, "BYTES:WAYS, from the first level on, instead of a system");
  app.add_flag("--into-cache", options.into_cache, "devices write into the last level (direct cache access)");
  app.add_flag("--whole", options.whole, "the hops' accesses count, too, and nothing is delivered by a device");
  app.add_option("--buffer-bytes", options.buffer_bytes, "of all rings");
  app.add_option("--warm-bytes", options.warm_bytes, "to route before counting");
  app.add_option("--bytes", options.bytes, "to route");
  app.add_option("--payload", options.payload, "bytes of a message; a multiple of 8");
  wherry::parse_command_line(app, argc, argv);
  try {
    if (json.empty()) {
      fmt::print("{}\n", run(options).dump());
      return 0;
    }
    std::ofstream out(json);
    out << run_all(quick).dump(2) << '\n';
    out.close();
    if (!out) throw std::runtime_error("cannot write " + json);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "route_trace: {}\n", error.what());
    return 1;
  }
}
