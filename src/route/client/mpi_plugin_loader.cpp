// SPDX-License-Identifier: Apache-2.0
#include "route/client/mpi_plugin_loader.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>

#include "base/try.hpp"
#include "route/client/environment.hpp"

namespace wherry::route {
namespace {

namespace fs = std::filesystem;

/// Where to search for the plugin: the named path, else beside the library or program with this code, then the dynamic
/// linker's paths.
std::vector<std::string> plugin_paths() {
  if (auto named = variable(kPluginVariable)) return {*named};
  std::vector<std::string> paths;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&load_plugin), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    const fs::path here = fs::canonical(info.dli_fname, error).parent_path();
    for (const char* path : {".", "../lib", "../src", "../../src", "../../build/release/src"}) {
      const fs::path candidate = (here / path / "libwherry_mpi.so").lexically_normal();
      if (access(candidate.c_str(), R_OK) == 0) paths.push_back(candidate.string());
    }
  }
  paths.emplace_back("libwherry_mpi.so");
  return paths;
}

template <typename F>
bool find(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

/// The first line of the version text of the MPI that this process is linked with; empty without MPI. MPI allows the
/// call before MPI_Init (MPI 3.1, section 8.1.1).
std::string mpi_of_program() {
  using GetVersion = int (*)(char*, int*);
  const auto get = reinterpret_cast<GetVersion>(dlsym(RTLD_DEFAULT, "MPI_Get_library_version"));
  if (get == nullptr) return {};
  std::string text(8192, '\0');  // the longest of MPICH and Open MPI
  int length = 0;
  get(text.data(), &length);
  text.resize(std::min(text.find('\0'), text.size()));
  return text.substr(0, text.find('\n'));
}

/// With two MPI libraries in one process, calls to one library would reach functions of the other.
Status check_family(const std::string& program, std::string_view plugin, const std::string& path) {
  if (program.empty() || plugin.empty()) return {};
  const bool open_mpi = program.find("Open MPI") != std::string::npos;
  if (open_mpi == (plugin == "Open MPI")) return {};
  return {StatusCode::kVersionMismatch,
          fmt::format("this program is linked with another MPI ({}) than the plugin {} ({}): build the plugin with the "
                      "program's MPI (docs/guide/route-launch.md) and name it with {}",
                      program, path, plugin, kPluginVariable)};
}

}  // namespace

Result<MpiPlugin> load_plugin(const MpiLauncher& launcher) {
  std::string tried;
  const std::string program = mpi_of_program();
  for (const std::string& path : plugin_paths()) {
    if (!program.empty()) {
      // First load it locally, so that other libraries do not use its symbols. No MPI function is called here.
      void* const candidate = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
      decltype(&wherry_mpi_family) family = nullptr;
      if (candidate != nullptr && find(candidate, "wherry_mpi_family", family)) {
        WHERRY_TRY(check_family(program, family(), path));
      }
    }
    // RTLD_GLOBAL: parts that some MPI libraries load need the symbols. Never close it: MPI cannot be unloaded.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      if (const char* why = dlerror(); why != nullptr) tried += fmt::format("\n  {}", why);
      continue;
    }
    MpiPlugin plugin;
    if (!find(library, "wherry_mpi_version", plugin.version) || !find(library, "wherry_mpi_init", plugin.init) ||
        (plugin.version() == WHERRY_MPI_PLUGIN_VERSION && !find(library, "wherry_mpi_family", plugin.family)) ||
        !find(library, "wherry_mpi_allgatherv", plugin.allgatherv) ||
        !find(library, "wherry_mpi_error", plugin.error)) {
      return Status(StatusCode::kVersionMismatch, fmt::format("{} is not Wherry's MPI plugin", path));
    }
    if (plugin.version() != WHERRY_MPI_PLUGIN_VERSION) {
      return Status(StatusCode::kVersionMismatch,
                    fmt::format("the MPI plugin {} is of version {}, the library wants {}: build both from one source",
                                path, plugin.version(), WHERRY_MPI_PLUGIN_VERSION));
    }
    return plugin;
  }
  return Status(
      StatusCode::kNotFound,
      fmt::format(
          "an MPI launcher started this process ({} is set), but the MPI plugin libwherry_mpi.so cannot be "
          "loaded, and without it the ranks cannot find each other. Build it with the MPI of that launcher "
          "(docs/guide/route-launch.md) and put it beside the library, or name it with {}; or use `wherry run`. "
          "Tried:{}",
          launcher.variable, kPluginVariable, tried));
}

}  // namespace wherry::route
