// SPDX-License-Identifier: Apache-2.0
#include "route/client/pmix_library.hpp"

#include <dlfcn.h>
#include <fmt/core.h>

#include <charconv>

#include "route/client/environment.hpp"

namespace wherry::route::pmix {
namespace {

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

int major_version(std::string_view text) noexcept {
  constexpr std::string_view kDigits = "0123456789";
  const std::size_t begin = text.find_first_of(kDigits);
  if (begin == std::string_view::npos) return 0;
  int major = 0;
  const char* const end = text.data() + text.size();
  const auto [after, error] = std::from_chars(text.data() + begin, end, major);
  return error == std::errc() && after != end && *after == '.' ? major : 0;
}

Result<Library> load_library() {
  const auto named = variable(kLibraryVariable);
  // If the program has already loaded a library of this name (for example the MPI's), dlopen finds that one, as a
  // process may be only one client of its server.
  const std::string path = named.value_or("libpmix.so.2");
  void* const file = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) {
    const char* const why = dlerror();
    return Status(StatusCode::kNotFound,
                  fmt::format("libpmix cannot be loaded ({}). Install it (Debian: libpmix2), or name it with {}",
                              why != nullptr ? why : path, kLibraryVariable));
  }
  Library library;
  if (!find(file, "PMIx_Get_version", library.get_version)) {
    return Status(StatusCode::kVersionMismatch, fmt::format("{} is not PMIx: it has no PMIx_Get_version", path));
  }
  const std::string version = library.get_version();
  const int major = major_version(version);
  if (major < kOldestMajor || major > kNewestMajor) {
    return Status(StatusCode::kVersionMismatch,
                  fmt::format("{} is {}; Wherry knows PMIx {} to {}: name another one with {}", path, version,
                              kOldestMajor, kNewestMajor, kLibraryVariable));
  }
  if (!find(file, "PMIx_Error_string", library.error_string) || !find(file, "PMIx_Initialized", library.initialized) ||
      !find(file, "PMIx_Init", library.init) || !find(file, "PMIx_Finalize", library.finalize) ||
      !find(file, "PMIx_Abort", library.abort) || !find(file, "PMIx_Put", library.put) ||
      !find(file, "PMIx_Commit", library.commit) || !find(file, "PMIx_Fence", library.fence) ||
      !find(file, "PMIx_Get", library.get) ||
      !find(file, "PMIx_Register_event_handler", library.register_event_handler)) {
    return Status(StatusCode::kVersionMismatch,
                  fmt::format("{} ({}) lacks functions of the PMIx standard", path, version));
  }
  return library;
}

}  // namespace wherry::route::pmix
