// SPDX-License-Identifier: Apache-2.0
#include "probe/device/device_paths.hpp"

#include <cstdlib>
#include <iterator>

#include "probe/device/character.hpp"
#include "probe/device/cuda.hpp"
#include "probe/device/doca.hpp"
#include "probe/device/edu.hpp"
#include "probe/device/mmio.hpp"
#include "probe/device/pci_config.hpp"
#include "probe/device/verbs.hpp"

namespace wherry::probe {

std::vector<std::unique_ptr<Path>> device_paths(const DeviceSettings& settings) {
  std::vector<std::unique_ptr<Path>> paths;
  const auto add = [&](std::vector<std::unique_ptr<Path>> more) {
    paths.insert(paths.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  paths.push_back(pci_config_path(settings));
  add(mmio_paths(settings));
  add(edu_paths(settings));
  add(character_paths(settings));
  add(cuda_paths(settings));
  add(verbs_paths(settings));
  add(doca_paths());
  return paths;
}

std::vector<std::unique_ptr<Path>> device_paths() { return device_paths(settings_from(std::getenv)); }

}  // namespace wherry::probe
