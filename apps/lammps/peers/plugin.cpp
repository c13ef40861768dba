// SPDX-License-Identifier: Apache-2.0
// peersplugin.so: `plugin load peersplugin.so` brings the styles of fix_peer.hpp.
#include "peers/fix_peer.hpp"
#include "plugin/lammps_plugin.hpp"

static void* create_clock(void* lammps, int argument_count, char** arguments) {
  return static_cast<LAMMPS_NS::Fix*>(
      new wherry::lammps::FixClock(static_cast<LAMMPS_NS::LAMMPS*>(lammps), argument_count, arguments));
}

void lammpsplugin_init(void* lammps, void* handle, void* register_style) {
  const auto add = [&](const char* name, const char* info, void* (*create)(void*, int, char**)) {
    lammpsplugin_t fix{};
    fix.version = WHERRY_LAMMPS_VERSION;
    fix.style = "fix";
    fix.name = name;
    fix.info = info;
    fix.author = "the Wherry project";
    fix.creator.v2 = create;
    fix.handle = handle;
    reinterpret_cast<lammpsplugin_register>(register_style)(&fix, lammps);
  };
  add("peer/clock", "host time that frames take", create_clock);
  add("peer/arrow", "Arrow IPC into shared memory", wherry::lammps::create_arrow);
#ifdef WHERRY_ADIOS
  add("peer/adios", "ADIOS2 BP5 file", wherry::lammps::create_adios);
#endif
  add("peer/flight", "Arrow Flight DoPut", wherry::lammps::create_flight);
}
