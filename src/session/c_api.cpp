// SPDX-License-Identifier: Apache-2.0
// The C ABI of session.hpp: thin functions over the C++ classes. They add three things. They throw no exceptions.
// Structs have sizes. A session counts its objects, so closing in the wrong order is an error instead of a crash.
#include <fmt/core.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "base/try.hpp"
#include "base/version.hpp"
#include "session/c_handles.hpp"

using wherry::ok_status;
using wherry::Result;
using wherry::Status;
using wherry::StatusCode;
using wherry::c_abi::give_defaults;
using wherry::c_abi::guarded;
using wherry::c_abi::invalid;
using wherry::c_abi::is_null;
using wherry::c_abi::take_enum;
using wherry::c_abi::take_options;
using wherry::c_abi::time;

struct wherry_memory {
  wherry_session* owner;
  wherry::Memory memory;
};

struct wherry_region {
  wherry_session* owner;
  wherry::Region region;
};

namespace {

static_assert(WHERRY_INTERNAL == static_cast<int>(StatusCode::kInternal));
static_assert(WHERRY_SOURCE_FAULT == static_cast<int>(StatusCode::kSourceFault));
static_assert(WHERRY_TRANSPORT_RDMA == static_cast<int>(wherry::Transport::kRdma));

// The size of each struct in its first version. A smaller size is not valid. Do not change them when a field is added.
constexpr std::size_t kSessionOptionsFirst = 80;
constexpr std::size_t kSessionInfoFirst = 64;
static_assert(sizeof(wherry_session_options) == 80 && sizeof(wherry_session_info) == 64);
static_assert(sizeof(wherry_error) == 1024);  // cannot grow within one WHERRY_ABI_VERSION

wherry_session_options session_defaults() noexcept {
  const wherry::SessionOptions d;
  wherry_session_options o{};
  o.connect_timeout_ns = std::chrono::nanoseconds(d.connect_timeout).count();
  o.max_tickets = d.max_tickets;
  o.transport = static_cast<std::int32_t>(d.transport);
  o.embedded_budget_bytes = d.embedded.budget_bytes;
  o.embedded_core = d.embedded.core;
  o.embedded_flight = d.embedded.flight ? 1 : 0;
  return o;
}

Result<wherry::SessionOptions> session_options(const wherry_session_options* given) {
  wherry_session_options o = session_defaults();
  WHERRY_TRY(take_options(given, kSessionOptionsFirst, "wherry_session_options", o));
  wherry::SessionOptions out;
  if (o.agent != nullptr) out.agent = o.agent;
  if (o.token != nullptr) out.token = o.token;
  if (o.name != nullptr) out.name = o.name;
  WHERRY_TRY(take_enum(o.transport, wherry::Transport::kRdma, "transport", out.transport));
  out.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(time(o.connect_timeout_ns));
  out.max_tickets = o.max_tickets;
  if (o.embedded_program != nullptr) out.embedded.program = o.embedded_program;
  for (const char* const* a = o.embedded_arguments; a != nullptr && *a != nullptr; ++a) {
    out.embedded.arguments.emplace_back(*a);
  }
  out.embedded.budget_bytes = o.embedded_budget_bytes;
  out.embedded.core = o.embedded_core;
  out.embedded.flight = o.embedded_flight != 0;
  return out;
}

}  // namespace

// ---------------------------------------------------------------- library

const char* wherry_version(void) { return wherry::kVersion; }
int wherry_abi_version(void) { return WHERRY_ABI_VERSION; }

const char* wherry_status_name(int status) {
  // The texts are literals, so they end with a zero.
  return status < 0 || status > WHERRY_INTERNAL ? "unknown" : wherry::to_string(static_cast<StatusCode>(status)).data();
}

// ---------------------------------------------------------------- session

int wherry_session_options_init(wherry_session_options* options, size_t size) {
  return give_defaults(options, size, kSessionOptionsFirst, session_defaults());
}

int wherry_session_open(const wherry_session_options* options, wherry_session** session, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    WHERRY_ASSIGN(auto full, session_options(options));
    WHERRY_ASSIGN(auto opened, wherry::Session::open(full));
    std::string text = opened.info().to_string();
    *session = new wherry_session{std::move(opened), std::move(text)};
    return ok_status();
  });
}

int wherry_session_close(wherry_session* session, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session != nullptr && session->children != 0) {
      return {StatusCode::kFailedPrecondition,
              fmt::format("{} streams, regions or pieces of memory of this session are open: close them first",
                          session->children)};
    }
    delete session;
    return ok_status();
  });
}

int wherry_session_get_info(const wherry_session* session, wherry_session_info* info, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (info == nullptr) return is_null("info");
    const std::size_t size = info->size;
    const wherry::SessionInfo& from = session->session.info();
    wherry_session_info to{};
    to.agent_version = from.agent_version.c_str();
    to.transports = from.transports.c_str();
    to.session_file = from.session_file.c_str();
    to.flight_uri = from.flight_uri.c_str();
    to.text = session->text.c_str();
    to.agent_pid = from.agent_pid;
    to.heap_one_sided = from.heap == wherry::Verdict::kOneSided ? 1 : 0;
    to.allocated_one_sided = from.allocated == wherry::Verdict::kOneSided ? 1 : 0;
    to.mapped = from.mapped ? 1 : 0;
    if (give_defaults(info, size, kSessionInfoFirst, to) != WHERRY_OK)
      return invalid(fmt::format("info->size is {}: set it to sizeof(wherry_session_info)", size));
    return ok_status();
  });
}

int wherry_session_in_flight(wherry_session* session, size_t* count, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (count == nullptr) return is_null("count");
    *count = session->session.in_flight();
    return ok_status();
  });
}

int wherry_session_drain(wherry_session* session, int64_t timeout_ns, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    return session->session.drain(time(timeout_ns));
  });
}

// ---------------------------------------------------------------- memory

int wherry_memory_allocate(wherry_session* session, size_t bytes, wherry_memory** memory, void** data,
                           wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (memory == nullptr || data == nullptr) return is_null(memory == nullptr ? "memory" : "data");
    WHERRY_ASSIGN(auto allocated, session->session.allocate(bytes));
    void* const at = allocated.bytes().data();
    *memory = new wherry_memory{session, std::move(allocated)};
    *data = at;
    ++session->children;
    return ok_status();
  });
}

int wherry_memory_free(wherry_memory* memory, wherry_error* error) {
  return guarded(error, [&] {
    if (memory != nullptr) --memory->owner->children;
    delete memory;
    return ok_status();
  });
}

int wherry_region_register(wherry_session* session, const void* data, size_t bytes, wherry_region** region,
                           wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (session == nullptr) return is_null("session");
    if (region == nullptr) return is_null("region");
    WHERRY_ASSIGN(auto registered, session->session.register_memory(data, bytes));
    *region = new wherry_region{session, std::move(registered)};
    ++session->children;
    return ok_status();
  });
}

int wherry_region_unregister(wherry_region* region, wherry_error* error) {
  return guarded(error, [&]() -> Status {
    if (region == nullptr) return ok_status();
    WHERRY_TRY(region->region.unregister());
    --region->owner->children;
    delete region;
    return ok_status();
  });
}
