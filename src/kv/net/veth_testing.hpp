// SPDX-License-Identifier: Apache-2.0
// For tests and measurements: network namespaces joined by veth pairs. For a process with one thread, or whose threads
// each enter one namespace.
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
#include <vector>

#include "base/socket.hpp"
#include "kv/message.hpp"
#include "kv/net/neighbour.hpp"

namespace wherry::kv {

/// Network namespaces that a thread can enter and leave. They end with the process.
class VethSpaces {
 public:
  VethSpaces(VethSpaces&&) = default;
  VethSpaces& operator=(VethSpaces&&) = default;
  ~VethSpaces() { leave(); }

  void enter(int i) const { setns(spaces_[i].get(), CLONE_NEWNET); }
  void leave() const {
    if (home_) setns(home_.get(), CLONE_NEWNET);
  }

  /// Runs a shell command in the thread's namespace. `said`: its output.
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

 protected:
  VethSpaces() = default;
  /// Makes namespaces, and returns whether that is permitted. Afterwards the thread is in the last one.
  bool make_spaces(int count, std::string* why) {
    home_ = Fd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    for (int i = 0; i < count; ++i) {
      if (unshare(CLONE_NEWNET) != 0) {
        *why = fmt::format("cannot make a network namespace: {} (be root)", std::strerror(errno));
        return false;
      }
      spaces_.emplace_back(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    }
    return true;
  }
  /// Joins interfaces of two namespaces by a veth pair.
  bool cable(int a, const std::string& at_a, int b, const std::string& at_b, std::string* why) const {
    enter(a);
    return run(fmt::format("ip link add {} type veth peer name {} netns /proc/{}/fd/{}", at_a, at_b, getpid(),
                           spaces_[b].get()),
               why);
  }

 private:
  Fd home_;
  std::vector<Fd> spaces_;
};

/// Two namespaces, each with one interface.
class VethPair : public VethSpaces {
 public:
  static constexpr const char* kInterface = "veth0";  ///< in either
  static constexpr std::array kIps{0x0a4d0001U, 0x0a4d0002U};

  /// Returns no value, and the reason in `why`, if that is not permitted.
  static std::optional<VethPair> make(std::string* why) {
    VethPair pair;
    bool made = pair.make_spaces(2, why) && pair.cable(0, kInterface, 1, kInterface, why);
    for (int i = 0; i < 2 && made; ++i) {
      pair.enter(i);
      made = run(fmt::format("ip addr add 10.77.0.{}/24 dev {}", i + 1, kInterface), why) &&
             run(fmt::format("ip link set {} up", kInterface), why) && run("ip link set lo up", why);
    }
    pair.leave();
    return made ? std::optional(std::move(pair)) : std::nullopt;
  }
  /// The address of one end, with its MAC.
  [[nodiscard]] Endpoint at(int i, std::uint16_t port) const {
    enter(i);
    return {.mac = find_interface(kInterface)->mac, .ip = kIps[i], .port = port};
  }

 private:
  VethPair() = default;
};

/// Three namespaces with a cable between each two. Each has one address for both of its interfaces, and a route to each
/// of the others.
class VethTriangle : public VethSpaces {
 public:
  static constexpr int kSpaces = 3;

  static std::optional<VethTriangle> make(std::string* why) {
    VethTriangle mesh;
    bool made = mesh.make_spaces(kSpaces, why);
    for (int a = 0; a < kSpaces && made; ++a)
      for (int b = a + 1; b < kSpaces && made; ++b) made = mesh.cable(a, interface(a, b), b, interface(b, a), why);
    for (int a = 0; a < kSpaces && made; ++a) {
      mesh.enter(a);
      for (int b = 0; b < kSpaces && made; ++b) {
        if (a == b) continue;
        made = run(fmt::format("ip addr add 10.77.0.{0}/32 dev {2} && ip link set {2} up && "
                               "ip route add 10.77.0.{1}/32 dev {2}",
                               a + 1, b + 1, interface(a, b)),
                   why);
      }
    }
    mesh.leave();
    return made ? std::optional(std::move(mesh)) : std::nullopt;
  }
  /// The interface of one namespace that leads to another.
  static std::string interface(int at, int to) { return fmt::format("veth{}", to < at ? to : to - 1); }
  static Endpoint at(int i, std::uint16_t port) { return {.ip = 0x0a4d0001U + i, .port = port}; }

 private:
  VethTriangle() = default;
};

}  // namespace wherry::kv
