// SPDX-License-Identifier: Apache-2.0
// wherryplugin.so: `plugin load wherryplugin.so`, or LAMMPS_PLUGIN_PATH, brings `fix wherry`.
#include "plugin/fix_wherry.hpp"
#include "plugin/lammps_plugin.hpp"

static void* create_fix(void* lammps, int argument_count, char** arguments) {
  return new wherry::lammps::FixWherry(static_cast<LAMMPS_NS::LAMMPS*>(lammps), argument_count, arguments);
}

void lammpsplugin_init(void* lammps, void* handle, void* register_style) {
  lammpsplugin_t fix{};
  fix.version = WHERRY_LAMMPS_VERSION;
  fix.style = "fix";
  fix.name = "wherry";
  fix.info = "per-atom data to Arrow streams, offloaded by Wherry";
  fix.author = "the Wherry project";
  fix.creator.v2 = create_fix;
  fix.handle = handle;
  reinterpret_cast<lammpsplugin_register>(register_style)(&fix, lammps);
}
