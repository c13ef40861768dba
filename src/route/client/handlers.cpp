// SPDX-License-Identifier: Apache-2.0
#include "route/client/handlers.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/core.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace wherry::route::detail {
namespace {

/// Constants of 64-bit FNV-1a (G. Fowler, L. C. Noll, K.-P. Vo; draft-eastlake-fnv).
constexpr std::uint64_t kBasis = 0xcbf29ce484222325;
constexpr std::uint64_t hash(std::uint64_t seed, std::string_view text) noexcept {
  for (const char c : text) seed = (seed ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
  return seed;
}
constexpr std::uint64_t hash(std::uint64_t seed, std::uint64_t word) noexcept {
  for (int i = 0; i < 8; ++i) seed = (seed ^ (word >> 8 * i & 0xff)) * 0x100000001b3;
  return seed;
}

std::uint64_t hash(const HandlerInfo& info) noexcept {
  const std::uint64_t what = hash(hash(kBasis, static_cast<std::uint64_t>(info.kind)), info.size);
  return info.name.empty() ? hash(hash(what, info.type + '/'), info.function) : hash(hash(what, 1), info.name);
}

/// The location of code: its program or library and the offset in it, which are equal in all processes of one program.
/// Empty: the code is in neither.
std::string location_of(const void* code) {
  Dl_info found{};
  link_map* object = nullptr;
  if (dladdr1(code, &found, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 || object == nullptr) return {};
  const std::string_view path = object->l_name;  // empty: the program itself, whatever it is called
  const auto offset = reinterpret_cast<std::uintptr_t>(code) - static_cast<std::uintptr_t>(object->l_addr);
  return fmt::format("{}+{:#x}", path.substr(path.rfind('/') + 1), offset);
}

std::string readable(const std::string& type) {
  int status = 0;
  char* const text = abi::__cxa_demangle(type.c_str(), nullptr, nullptr, &status);
  std::string readable = status == 0 ? text : type;
  std::free(text);
  return readable;
}

}  // namespace

Result<std::uint32_t> Handlers::add(std::unique_ptr<HandlerEntry> entry, HandlerInfo info) {
  std::uint32_t id = next_;
  if (info.name.empty()) {
    const void* code = info.code;
    if (code == nullptr && info.function.empty()) code = reinterpret_cast<const void*>(entry->run);
    if (code != nullptr) info.function = location_of(code);
    const auto like_it = [&](const Known& known) {
      const HandlerInfo& other = known.info;
      return other.name.empty() && other.kind == info.kind && other.size == info.size && other.type == info.type &&
             other.function == info.function;
    };
    if (std::ranges::any_of(known_, like_it)) {
      return Status(
          StatusCode::kAlreadyExists,
          fmt::format("the same function is registered for {} already, or one that cannot be told apart from it, "
                      "neither with a name: ranks that register the two in another order would not be noticed. "
                      "Register them by name: give each a name",
                      info.type.empty() ? fmt::format("messages of {} bytes", info.size) : readable(info.type)));
    }
    if (id == kFirstNamed) {
      return Status(StatusCode::kResourceExhausted,
                    fmt::format("a rank can have {} handlers without a name", kFirstNamed - kFirstUserHandler));
    }
    ++next_;
    ordered_ = hash(hash(ordered_, id), hash(info));
  } else {
    const std::uint64_t number = hash(kBasis, info.name);
    id = kFirstNamed + static_cast<std::uint32_t>((number ^ number >> 32) % (kMaxHandlers - kFirstNamed));
    if (find(id) != nullptr) {
      const auto other = std::ranges::find(known_, id, &Known::id);
      return Status(StatusCode::kAlreadyExists,
                    other->info.name == info.name
                        ? fmt::format("a handler is called '{}' already: give each its own name", info.name)
                        : fmt::format("the handlers '{}' and '{}' get the same number from their names: rename one",
                                      other->info.name, info.name));
    }
    named_ += hash(info);
  }
  if (entries_.size() <= id) entries_.resize(id + 1);
  entries_[id] = std::move(entry);
  known_.push_back({id, std::move(info)});
  signature_ = hash(hash(hash(kBasis, ordered_), named_), known_.size());
  return id;
}

Status Handlers::refusal(std::uint32_t id, std::size_t bytes, Rank rank) const {
  constexpr std::string_view kRemedy =
      "register the same handlers, in the same order, on every rank before it polls, or register them by name";
  const HandlerEntry* const entry = find(id);
  if (entry == nullptr) {
    return {StatusCode::kFailedPrecondition,
            fmt::format("a message has come for a handler that rank {} has not registered: {}. Rank {} has {}", rank,
                        kRemedy, rank, describe())};
  }
  const HandlerInfo& info = std::ranges::find(known_, id, &Known::id)->info;
  const std::string name = info.name.empty() ? readable(info.type) : '\'' + info.name + '\'';
  if (info.kind == HandlerInfo::Kind::kCoded) {
    return {StatusCode::kProtocol,
            fmt::format("a message of {} bytes has come to rank {} for its handler of {}, and its Codec's read() "
                        "refuses it: does every rank write what read() reads?",
                        bytes, rank, name)};
  }
  return {StatusCode::kFailedPrecondition,
          fmt::format("a message of {} bytes has come to rank {} for its handler of {}, whose messages have {} bytes: "
                      "ranks have registered different handlers; {}. Rank {} has {}",
                      bytes, rank, name, entry->pack_size, kRemedy, rank, describe())};
}

std::string Handlers::describe() const {
  constexpr std::size_t kMaxListedHandlers = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(known_.size(), kMaxListedHandlers); ++i) {
    const HandlerInfo& info = known_[i].info;
    const std::uint64_t bytes = info.kind == HandlerInfo::Kind::kService ? info.size >> 32 : info.size;
    text += fmt::format("{}{}: {}{}", i == 0 ? "" : ", ", i,
                        info.name.empty() ? readable(info.type) : '\'' + info.name + '\'',
                        bytes == 0 ? std::string() : fmt::format(" ({} bytes)", bytes));
  }
  if (known_.size() > kMaxListedHandlers) text += fmt::format(" and {} more", known_.size() - kMaxListedHandlers);
  return text.empty() ? "none" : text;
}

}  // namespace wherry::route::detail
