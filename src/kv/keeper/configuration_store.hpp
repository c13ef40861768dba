// SPDX-License-Identifier: Apache-2.0
// Where a keeper's configuration outlives it: a file or etcd.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kv/control/configuration.hpp"

namespace wherry::kv {

class ConfigurationStore {
 public:
  virtual ~ConfigurationStore() = default;
  /// What was kept last; nullopt: nothing was.
  virtual Result<std::optional<Configuration>> load() = 0;
  /// Replaces it, durably. kFailedPrecondition: another keeper replaced it. Other errors: it may be tried again.
  virtual wherry::Status store(const Configuration& configuration) = 0;
};

/// One file, replaced by renaming, and locked against a second keeper for as long as this lives.
Result<std::unique_ptr<ConfigurationStore>> open_file_store(const std::string& path);

}  // namespace wherry::kv
