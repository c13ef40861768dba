// SPDX-License-Identifier: Apache-2.0
// The connection between the host's part, which is a separate process, and the machine that has NIC and card. Each
// access to a register is a message and its answer over a socket. So the machine sees every access of the host's part,
// and the kernel counts that part's processor time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "sim/qemu/child_process.hpp"
#include "wherry/status.hpp"

namespace wherry::sim {

enum class HostCall : std::uint32_t {
  kNicRead,
  kNicWrite,
  kCardRead,  ///< of all that is on the card: hardware.hpp
  kCardWrite,
  kTwin,    ///< a card that has no registers: `value` 1 starts it, 0 stops it
  kReady,   ///< set up; the answer comes when everything shall be given back
  kFailed,  ///< `text` says why; no answer comes
};

struct HostMessage {
  HostCall call = HostCall::kReady;
  std::uint32_t offset = 0;
  std::uint32_t value = 0;
  std::array<char, 500> text{};  ///< ends with 0
};

/// The host's end. Calls block until the machine answers. If the machine is gone, the process ends.
class HostLink {
 public:
  explicit HostLink(int socket) : socket_(socket) {}
  /// The answer's value.
  std::uint32_t call(HostCall call, std::uint32_t offset = 0, std::uint32_t value = 0) const;
  void fail(std::string_view why) const;

 private:
  int socket_;
};

/// Linux' report about a process.
struct ProcessUse {
  std::uint64_t cpu_ns = 0;
  char state = '?';  ///< as in proc(5): S sleeps, T is stopped
};
[[nodiscard]] ProcessUse use_of(pid_t pid);

/// The machine's end of the link, and the process at the other end.
class HostPart {
 public:
  /// Performs an access, and returns what it reads. It may let the machine run meanwhile.
  using Access = std::function<Result<std::uint32_t>(const HostMessage&)>;

  /// Starts `program` with `arguments`, and passes its end of the socket as the number in --fd.
  static Result<HostPart> start(const std::string& program, std::vector<std::string> arguments);

  /// Answers the requests. kUnavailable: the process has ended. kFailedPrecondition: the process reported why it
  /// failed.
  Status serve(const Access& access);
  [[nodiscard]] bool ready() const noexcept { return ready_; }
  /// Accesses to registers, since its start.
  [[nodiscard]] std::uint64_t accesses() const noexcept { return accesses_; }
  [[nodiscard]] ProcessUse use() const { return use_of(pid()); }
  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  /// Takes all processor time from the process, or lets it run again (SIGSTOP, SIGCONT).
  void suspend() const;
  void resume() const;
  /// Precondition: ready(). The process then accesses registers again, and ends.
  void give_back();
  [[nodiscard]] bool ended() { return !process_.running(); }

 private:
  HostPart(ChildProcess process, Fd socket) : process_(std::move(process)), socket_(std::move(socket)) {}

  ChildProcess process_;
  Fd socket_;
  bool ready_ = false, giving_back_ = false;
  std::uint64_t accesses_ = 0;
};

}  // namespace wherry::sim
