// SPDX-License-Identifier: Apache-2.0
// Loads a configuration file of arbitrary text. Accepted settings must survive a dump and a second load. A setting's
// range must not depend on its source.
#include <cstdlib>
#include <string>

#include "agent/config.hpp"

namespace {

struct Configuration {
  wherry::AgentConfig agent;
  wherry::Services services = wherry::make_services();
  wherry::Settings table = wherry::settings(agent, services);
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const Configuration read;
  if (!wherry::load_toml_text(text, "fuzz", read.table)) return 0;
  const Configuration one;
  for (std::size_t i = 0; i < read.table.size(); ++i) {
    const std::string value = read.table[i].get();
    if (!one.table[i].set(value) || one.table[i].get() != value) std::abort();
  }
  (void)wherry::check(read.agent);
  (void)wherry::check(read.services);
  const std::string dumped = wherry::dump_toml(read.table);
  const Configuration again;
  if (!wherry::load_toml_text(dumped, "dump", again.table) || wherry::dump_toml(again.table) != dumped) std::abort();
  return 0;
}
