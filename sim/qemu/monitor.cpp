// SPDX-License-Identifier: Apache-2.0
#include "sim/qemu/monitor.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"

namespace wherry::sim {

Monitor::Monitor(Fd socket) : channel_(std::move(socket)) {
  channel_.put(nlohmann::json{{"execute", command_}}.dump() + "\n");
}

void Monitor::post(const std::string& command, const nlohmann::json& arguments) {
  channel_.put(nlohmann::json{{"execute", command}, {"arguments", arguments}}.dump() + "\n");
  command_ = command;
  answer_.reset();
  ++unanswered_;
}

std::optional<Status> Monitor::take_answer() { return std::exchange(answer_, std::nullopt); }

bool Monitor::take_event(const std::string& name, const std::string& device) {
  const auto found = std::find_if(events_.begin(), events_.end(),
                                  [&](const Event& event) { return event.name == name && event.device == device; });
  if (found == events_.end()) return false;
  events_.erase(found);
  return true;
}

Status Monitor::turn() {
  WHERRY_TRY(channel_.flush());
  WHERRY_ASSIGN(bool some, channel_.fill());
  while (some) {
    const std::size_t end = channel_.text().find('\n');
    if (end == std::string_view::npos) break;
    const auto line = channel_.text().substr(0, end);
    const auto said = nlohmann::json::parse(line, nullptr, false);
    if (!said.is_object()) return {StatusCode::kProtocol, fmt::format("QEMU's monitor says: {}", line.substr(0, 200))};
    WHERRY_TRY(hear(said));
    channel_.consume(end + 1);
  }
  return {};
}

Status Monitor::hear(const nlohmann::json& said) {
  if (const auto event = said.find("event"); event != said.end() && event->is_string()) {
    const auto data = said.value("data", nlohmann::json::object());
    events_.push_back({event->get<std::string>(), data.is_object() ? data.value("device", "") : ""});
    return {};
  }
  const bool failed = said.contains("error");
  if (!failed && !said.contains("return")) return {};  // the greeting
  if (unanswered_ == 0) return {StatusCode::kProtocol, "QEMU's monitor answers what was not asked"};
  if (--unanswered_ != 0 || command_ == "qmp_capabilities") return {};
  answer_ = Status();
  if (failed)
    answer_ = Status(StatusCode::kFailedPrecondition,
                     fmt::format("QEMU refuses {}: {}", command_, said["error"].value("desc", "no reason given")));
  return {};
}

}  // namespace wherry::sim
