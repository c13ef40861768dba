// SPDX-License-Identifier: Apache-2.0 Stores a keeper's configuration beyond its life: in a file or in etcd.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "kv/control/configuration.hpp"

namespace wherry::kv {

class ConfigurationStore {
 public:
  virtual ~ConfigurationStore() = default;
  /// The last stored configuration; nullopt if there is none.
  virtual Result<std::optional<Configuration>> load() = 0;
  /// Replaces it, durably. kFailedPrecondition: another keeper replaced it. Other errors: it may be tried again.
  virtual wherry::Status store(const Configuration& configuration) = 0;
};

/// One file, replaced by renaming. It is locked against a second keeper for as long as this object lives.
Result<std::unique_ptr<ConfigurationStore>> open_file_store(const std::string& path);

}  // namespace wherry::kv
