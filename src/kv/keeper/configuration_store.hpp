// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stores a keeper's configuration beyond its life: in a file or in etcd.
#include <memory>
#include <optional>
#include <string>

#include "kv/control/configuration.hpp"

namespace wherry::kv {

class ConfigurationStore {
 public:
  virtual ~ConfigurationStore() = default;
  /// Returns the last stored configuration, or nullopt if there is none.
  virtual Result<std::optional<Configuration>> load() = 0;
  /// Stores it durably. kFailedPrecondition: another keeper has replaced the old one. Other errors: try again.
  virtual wherry::Status store(const Configuration& configuration) = 0;
};

/// A store in one file, which is replaced by renaming. As long as this object lives, no second keeper can use the file.
Result<std::unique_ptr<ConfigurationStore>> open_file_store(const std::string& path);

}  // namespace wherry::kv
