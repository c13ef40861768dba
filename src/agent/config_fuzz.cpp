// SPDX-License-Identifier: Apache-2.0
// A configuration file of arbitrary text: accepted settings must survive a dump and a second reading, and one setting's
// range must not depend on where it came from.
#include <cstdlib>
#include <string>

#include "agent/config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  wherry::AgentConfig config;
  if (!wherry::load_toml_text(text, "fuzz", config)) return 0;
  for (const wherry::Setting& setting : wherry::settings()) {
    wherry::AgentConfig one;
    if (!setting.set(one, setting.get(config)) || setting.get(one) != setting.get(config)) std::abort();
  }
  (void)wherry::check(config);
  const std::string dumped = wherry::dump_toml(config);
  wherry::AgentConfig again;
  if (!wherry::load_toml_text(dumped, "dump", again) || wherry::dump_toml(again) != dumped) std::abort();
  return 0;
}
