// SPDX-License-Identifier: Apache-2.0
// A client of QEMU's monitor (QMP: docs/interop/qmp-spec.rst): one JSON object a line; one command at a time.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/qemu/channel.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

class Monitor {
 public:
  /// Queues the command with which every client must begin.
  explicit Monitor(Fd socket);

  /// Queued; turn() sends it. Precondition: all earlier commands are answered.
  void post(const std::string& command, const nlohmann::json& arguments = nlohmann::json::object());
  /// Empty while there is no answer; an error is kFailedPrecondition with QEMU's own words.
  [[nodiscard]] std::optional<Status> take_answer();
  /// Whether an event of that name came for the device with that id; then the event is removed.
  [[nodiscard]] bool take_event(const std::string& name, const std::string& device);

  /// kUnavailable: QEMU is gone; kProtocol: the text is not QMP.
  Status turn();
  [[nodiscard]] bool wants_to_send() const noexcept { return channel_.wants_to_send(); }
  [[nodiscard]] int fd() const noexcept { return channel_.fd(); }

 private:
  struct Event {
    std::string name, device;
  };
  Status hear(const nlohmann::json& said);

  Channel channel_;
  std::string command_ = "qmp_capabilities";  ///< the one that is answered next
  std::size_t unanswered_ = 1;
  std::optional<Status> answer_;
  std::vector<Event> events_;
};

}  // namespace wherry::sim
