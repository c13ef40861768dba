// SPDX-License-Identifier: Apache-2.0
// convey.h: thin functions over Conveyor. Each kind of error of a conveyor is reported once, in one line on standard
// error, except if the conveyor is quiet.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <new>

#include "route/convey/context.hpp"
#include "wherry/convey.h"

using namespace wherry::route::convey;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::array<const char*, 14> kErrors{
    "no error",
    "the conveyor is in a state that does not allow this",
    "the call breaks the rules",
    "the conveyor is NULL",
    "there is no such rank",
    "a collective call from the wrong ranks",
    "the job has failed, or this process is not a rank of it",
    "out of memory",
    "only an elastic conveyor can do this",
    "the next item is not of the size that convey_begin was given: use convey_epull",
    "the item is larger than this conveyor can take",
    "the size of items cannot be 0",
    "the buffers would be too large",
    "a function pointer is NULL",
};

const char* text_of(int error) noexcept {
  if (error > 0) return "no error";
  return -error < static_cast<int>(kErrors.size()) ? kErrors[static_cast<std::size_t>(-error)] : "unknown error";
}

void tell(const char* function, int error, const char* more) noexcept {
  auto context = Context::get();
  std::fprintf(stderr, "rank %lld: %s: %s%s%s\n", context ? static_cast<long long>((*context)->runtime().rank()) : -1,
               function, text_of(error), *more == '\0' ? "" : ": ", more);
}

/// Returns `result`, and reports it if it is an error.
int checked(convey_t* c, const char* function, int result) noexcept {
  if (result >= 0) [[likely]]
    return result;
  try {
    if (c == nullptr) {
      tell(function, result, "");
    } else if (c->conveyor.first_time(result)) {
      tell(function, result, result == kComms ? c->conveyor.job().message().c_str() : "");
    }
  } catch (const std::exception&) {  // no memory for the text
  }
  return result;
}

template <typename Body>
int guarded(convey_t* c, const char* function, Body&& body) noexcept {
  if (c == nullptr) return checked(c, function, kNull);
  try {
    return checked(c, function, body(c->conveyor));
  } catch (const std::bad_alloc&) {
    return checked(c, function, kAlloc);
  } catch (const std::exception&) {
    return checked(c, function, kComms);
  }
}

convey_t* create(const char* function, std::size_t largest, bool elastic, std::uint64_t options) noexcept {
  const bool quiet = (options & convey_opt_QUIET) != 0;
  std::string why = "the capacity cannot be 0";
  try {
    if (largest != 0) {
      auto context = Context::get();
      if (context) {
        auto made = (*context)->create({std::min(largest, wherry::route::kMaxMessageBytes), elastic, quiet});
        if (made) return *made;
        why = made.status().to_string();
      } else {
        why = context.status().to_string();
      }
    }
    if (!quiet) std::fprintf(stderr, "%s: %s\n", function, why.c_str());
  } catch (const std::exception& e) {
    if (!quiet) std::fprintf(stderr, "%s: %s\n", function, e.what());
  }
  return nullptr;
}

/// Rounds up to a multiple of a cache line, if that does not overflow.
std::size_t round_up(std::size_t bytes) noexcept { return bytes > SIZE_MAX - 63 ? bytes : (bytes + 63) & ~size_t{63}; }

bool no_plan(const convey_cargo_t* /*cargo*/, convey_layout_t* /*layout*/) { return false; }

template <typename Value>
std::int64_t about_job(const char* function, Value value) noexcept {
  try {
    auto context = Context::get();
    if (context) return value((*context)->runtime());
    std::fprintf(stderr, "%s: %s\n", function, context.status().to_string().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s: %s\n", function, e.what());
  }
  return -1;
}

}  // namespace

const char convey_version[] = "0.6.0";
const convey_codec_t convey_standard_codec = {"none", &no_plan, nullptr, nullptr, nullptr, nullptr};

// ---------------------------------------------------------------- constructors

convey_t* convey_new(size_t /*max_bytes*/, size_t /*n_local*/, const convey_alc8r_t* /*alloc*/, uint64_t options) {
  return create("convey_new", SIZE_MAX, false, options);
}
convey_t* convey_new_elastic(size_t item_bound, size_t /*max_bytes*/, size_t /*n_local*/,
                             const convey_alc8r_t* /*alloc*/, uint64_t options) {
  return create("convey_new_elastic", std::max<size_t>(item_bound, 1), true, options);
}
convey_t* convey_new_simple(size_t capacity, const convey_alc8r_t* /*alloc*/, const convey_mpp_a2a_t* /*a2a*/,
                            uint64_t options) {
  return create("convey_new_simple", round_up(capacity), false, options);
}
convey_t* convey_new_twohop(size_t capacity, size_t /*row_procs*/, const convey_alc8r_t* /*alloc*/, uint64_t options) {
  return create("convey_new_twohop", round_up(capacity), false, options);
}
convey_t* convey_new_tensor(size_t capacity, int /*order*/, size_t /*n_local*/, size_t /*n_buffers*/,
                            const convey_alc8r_t* /*alloc*/, uint64_t options) {
  return create("convey_new_tensor", round_up(capacity), false, options);
}
convey_t* convey_new_etensor(size_t buffer_bytes, size_t monster_bytes, int /*order*/, size_t /*n_local*/,
                             size_t /*n_buffers*/, const convey_alc8r_t* /*alloc*/, uint64_t options) {
  return create("convey_new_etensor", std::max<size_t>({buffer_bytes, monster_bytes, 16}), true, options);
}

// ---------------------------------------------------------------- a session

int convey_begin(convey_t* c, size_t item_bytes, size_t align) {
  return guarded(c, "convey_begin", [&](Conveyor& conveyor) { return conveyor.begin(item_bytes, align); });
}
int convey_push(convey_t* c, const void* item, int64_t pe) {
  return guarded(c, "convey_push",
                 [&](Conveyor& conveyor) { return item == nullptr ? kUsage : conveyor.push(item, pe); });
}
int convey_epush(convey_t* c, size_t bytes, const void* item, int64_t pe) {
  return guarded(c, "convey_epush", [&](Conveyor& conveyor) {
    return item == nullptr && bytes != 0 ? kUsage : conveyor.epush(bytes, item, pe);
  });
}
int convey_pull(convey_t* c, void* item, int64_t* from) {
  return guarded(c, "convey_pull",
                 [&](Conveyor& conveyor) { return item == nullptr ? kUsage : conveyor.pull(item, from); });
}
void* convey_apull(convey_t* c, int64_t* from) {
  void* item = nullptr;
  guarded(c, "convey_apull", [&](Conveyor& conveyor) {
    int error = convey_FAIL;
    item = conveyor.apull(from, error);
    return error;
  });
  return item;
}
int convey_epull(convey_t* c, convey_item_t* result) {
  return guarded(c, "convey_epull",
                 [&](Conveyor& conveyor) { return result == nullptr ? kUsage : conveyor.epull(*result); });
}
int convey_unpull(convey_t* c) {
  return guarded(c, "convey_unpull", [](Conveyor& conveyor) { return conveyor.unpull(); });
}
int convey_advance(convey_t* c, bool done) {
  return guarded(c, "convey_advance", [&](Conveyor& conveyor) { return conveyor.advance(done); });
}
int convey_reset(convey_t* c) {
  return guarded(c, "convey_reset", [](Conveyor& conveyor) { return conveyor.reset(); });
}
int convey_free(convey_t* c) {
  if (c == nullptr) return convey_OK;
  if (c->conveyor.under_way()) return checked(c, "convey_free", kState);
  c->slot->destroy();
  return convey_OK;
}

// ---------------------------------------------------------------- about a conveyor

int convey_set_codec(convey_t* c, const convey_codec_t* codec, void* /*arg*/) {
  return guarded(c, "convey_set_codec", [&](Conveyor& conveyor) { return conveyor.set_codec(codec); });
}
size_t convey_item_size(convey_t* c) { return c == nullptr ? 0 : c->conveyor.item_bytes(); }
uint64_t convey_features(convey_t* c) {
  if (c == nullptr) return 0;
  return static_cast<uint64_t>(c->conveyor.traits().elastic ? convey_STEADY | convey_ELASTIC : convey_STEADY);
}
int64_t convey_statistic(convey_t* c, int which) { return c == nullptr ? 0 : c->conveyor.statistic(which); }
const char* convey_error_string(convey_t* /*c*/, int error) { return text_of(error); }

// ---------------------------------------------------------------- who this process is

int64_t wherry_convey_rank(void) {
  return about_job("wherry_convey_rank", [](wherry::route::Runtime& r) -> int64_t { return r.rank(); });
}
int64_t wherry_convey_ranks(void) {
  return about_job("wherry_convey_ranks", [](wherry::route::Runtime& r) -> int64_t { return r.ranks(); });
}
int wherry_convey_barrier(void) {
  return static_cast<int>(about_job("wherry_convey_barrier", [](wherry::route::Runtime& r) -> int64_t {
    return r.reduce(std::uint64_t{0}) ? 0 : static_cast<int64_t>(kComms);
  }));
}
