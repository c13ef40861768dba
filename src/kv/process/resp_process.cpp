// SPDX-License-Identifier: Apache-2.0
#include "kv/process/resp_process.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cstdio>

#include "base/text_file.hpp"
#include "base/try.hpp"
#include "kv/resp/gateway.hpp"

namespace wherry::kv {
namespace {

Result<std::string> password_in(const std::string& path) {
  struct stat about{};
  if (::stat(path.c_str(), &about) == 0 && (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return wherry::Status(StatusCode::kPermissionDenied,
                          fmt::format("{}: other users may open it; take that from them with `chmod 600`", path));
  WHERRY_ASSIGN(const std::string text, read_text_file(path, "the password file", 4096));
  const std::string line = text.substr(0, text.find_first_of("\r\n"));
  if (line.empty())
    return wherry::Status(StatusCode::kInvalidArgument, fmt::format("{}: its first line is empty", path));
  return line;
}

}  // namespace

wherry::Status run_resp(const RespProcessOptions& options, const std::atomic<bool>& stop) {
  resp::GatewayOptions how{.listen = {}, .open = options.no_password, .key_by_key = options.key_by_key};
  how.clients = options.clients;
  WHERRY_ASSIGN(how.listen, parse_host_port(options.listen));
  if (!options.password_file.empty()) {
    WHERRY_ASSIGN(how.password, password_in(options.password_file));
  }
  WHERRY_ASSIGN(
      Client client,
      Client::connect(
          {.cluster = options.cluster, .first_lane = options.first_lane, .lanes = options.lanes, .operations = 4096}));
  const HostPort at{how.listen.host, 0};
  WHERRY_ASSIGN(resp::Gateway gateway, resp::Gateway::open(std::move(client), std::move(how)));
  fmt::print("listening on {}\n", HostPort{at.host, gateway.port()}.to_string());
  std::fflush(stdout);
  return gateway.run(stop);
}

}  // namespace wherry::kv
