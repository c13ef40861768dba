// SPDX-License-Identifier: Apache-2.0
#include "kv/process/switch_process.hpp"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "base/log.hpp"
#include "base/try.hpp"
#include "kv/net/address.hpp"
#include "kv/net/xdp_switch.hpp"

namespace wherry::kv {

wherry::Status run_switch(const std::vector<std::string>& stations, const std::atomic<bool>& stop) {
  std::vector<XdpSwitch::Station> parsed;
  for (const std::string& text : stations) {
    const std::size_t equals = text.find('=');
    const auto mac = equals == std::string::npos ? std::nullopt : parse_mac(text.substr(equals + 1));
    if (!mac || equals == 0)
      return {StatusCode::kInvalidArgument,
              fmt::format("'{}': want an interface and the MAC behind it, as veth0=02:00:00:00:00:01", text)};
    parsed.push_back({.interface = text.substr(0, equals), .mac = *mac});
  }
  WHERRY_ASSIGN(const auto made, XdpSwitch::open(parsed));
  spdlog::info("kv switch of {} interfaces", parsed.size());
  while (!stop.load(std::memory_order_relaxed)) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return {};
}

}  // namespace wherry::kv
