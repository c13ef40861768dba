// SPDX-License-Identifier: Apache-2.0
// For tests and measurements: two network namespaces joined by a veth pair, for a process with one thread or threads
// that each enter one.
#pragma once

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "base/socket.hpp"
#include "kv/message.hpp"
#include "kv/neighbour.hpp"

namespace wherry::kv {

/// A namespace as a place to go to and to come back from. They vanish with the process.
class VethPair {
 public:
  static constexpr const char* kInterface = "veth0";  ///< in either
  static constexpr std::array kIps{0x0a4d0001U, 0x0a4d0002U};

  /// Nothing, and why, where that is not permitted.
  static std::optional<VethPair> make(std::string* why) {
    VethPair pair;
    pair.home_ = Fd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    for (Fd& space : pair.spaces_) {
      if (unshare(CLONE_NEWNET) != 0) {
        *why = fmt::format("cannot make a network namespace: {} (be root)", std::strerror(errno));
        return std::nullopt;
      }
      space = Fd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }
    pair.enter(0);
    const std::string other = fmt::format("/proc/{}/fd/{}", getpid(), pair.spaces_[1].get());
    bool made = run(fmt::format("ip link add {0} type veth peer name {0} netns {1}", kInterface, other), why);
    for (int i = 0; i < 2 && made; ++i) {
      pair.enter(i);
      made = run(fmt::format("ip addr add 10.77.0.{}/24 dev {}", i + 1, kInterface), why) &&
             run(fmt::format("ip link set {} up", kInterface), why) && run("ip link set lo up", why);
    }
    pair.leave();
    return made ? std::optional(std::move(pair)) : std::nullopt;
  }
  VethPair(VethPair&&) = default;
  VethPair& operator=(VethPair&&) = default;
  ~VethPair() { leave(); }

  void enter(int i) const { setns(spaces_[i].get(), CLONE_NEWNET); }
  void leave() const {
    if (home_) setns(home_.get(), CLONE_NEWNET);
  }
  /// Of an end, with its MAC.
  [[nodiscard]] Endpoint at(int i, std::uint16_t port) const {
    enter(i);
    return {.mac = find_interface(kInterface)->mac, .ip = kIps[i], .port = port};
  }

  /// A shell command where the thread is. `said`: its output.
  static bool run(const std::string& command, std::string* said) {
    said->clear();
    FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return false;
    std::array<char, 256> line{};
    while (fgets(line.data(), line.size(), pipe) != nullptr) *said += line.data();
    const bool good = pclose(pipe) == 0;
    if (!good) *said = fmt::format("{}: {}", command, *said);
    return good;
  }

 private:
  VethPair() = default;
  Fd home_;
  std::array<Fd, 2> spaces_;
};

}  // namespace wherry::kv
