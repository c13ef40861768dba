// SPDX-License-Identifier: Apache-2.0
// The command `wherry-kv resp`: docs/guide/kv-resp.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "wherry/status.hpp"

namespace wherry::kv {

struct RespProcessOptions {
  std::string cluster;  ///< its file
  std::string listen = "127.0.0.1:6379";
  std::string password_file;  ///< whose first line is the password; its owner's and root's alone
  bool no_password = false;
  bool key_by_key = false;
  std::size_t clients = 1000;
  std::uint32_t lanes = 64;  ///< writes at once
  std::optional<std::uint16_t> first_lane;
};

/// Prints "listening on HOST:PORT" on standard output when clients can connect. Errors: as Client::connect() and
/// Gateway::open(); kPermissionDenied: other users may read the password file.
wherry::Status run_resp(const RespProcessOptions& options, const std::atomic<bool>& stop);

}  // namespace wherry::kv
