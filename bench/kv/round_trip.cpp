// SPDX-License-Identifier: Apache-2.0
// kv_round_trip: one kv message there and back over a veth pair, both ends spinning. UDP sockets, AF_XDP in native and
// in generic mode alternate. Needs root. Prints a table; asserts nothing.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/command_line.hpp"
#include "base/cpu.hpp"
#include "kv/net/udp_port.hpp"
#include "kv/net/veth_testing.hpp"
#include "kv/net/xdp_port.hpp"

namespace {

using namespace wherry;
using namespace wherry::kv;

constexpr std::uint64_t kLostAfterNs = 100'000'000;

struct Settings {
  int rounds = 11, messages = 5000, warm_up = 500;
  bool one_thread = false;
};

enum class Path { udp, native, generic };
constexpr std::array kPaths{Path::udp, Path::native, Path::generic};
constexpr std::array kNames{"UDP", "AF_XDP native", "AF_XDP generic"};

struct Times {
  std::vector<double> us;       ///< of all rounds
  std::vector<double> medians;  ///< of each round
  std::uint64_t lost = 0;
};

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

template <Port T>
void round(T& asker, T& answerer, const Endpoint& to, std::size_t value_size, const Settings& settings, Times& times) {
  const auto answer = [&] {
    const std::size_t count = answerer.poll([&](const Endpoint& from, const Message& m) { answerer.send(from, m); });
    if (count != 0) answerer.flush();
    return count;
  };
  std::atomic<bool> stop{settings.one_thread};
  std::jthread echo([&] {
    if (const std::vector<int> cores = allowed_cores(); cores.size() > 1) (void)pin_thread({cores[1]});
    while (!stop.load(std::memory_order_relaxed))
      if (answer() == 0) cpu_relax();
  });
  const Bytes value(value_size, std::byte{0x5a});
  std::vector<double> here;
  for (int i = -settings.warm_up; i < settings.messages; ++i) {
    const std::uint64_t start = now_ns();
    asker.send(to, {.header = {.kind = 1, .request = static_cast<std::uint32_t>(i)}, .value = value});
    asker.flush();
    bool back = false;
    while (!back && now_ns() - start < kLostAfterNs) {
      if (settings.one_thread) answer();
      asker.poll([&](const Endpoint&, const Message& m) { back = m.header.request == static_cast<std::uint32_t>(i); });
    }
    if (!back)
      ++times.lost;
    else if (i >= 0)
      here.push_back(static_cast<double>(now_ns() - start) / 1e3);
  }
  stop = true;
  times.medians.push_back(quantile(here, 0.5));
  times.us.insert(times.us.end(), here.begin(), here.end());
}

template <typename T>
T require(Result<T> result) {
  if (result) return *std::move(result);
  fmt::print(stderr, "kv_round_trip: {}\n", result.status().message());
  std::exit(1);
}

void round(const VethPair& network, Path path, std::size_t value_size, const Settings& settings, Times& times) {
  const Endpoint a = network.at(1, 4243), b = network.at(0, 19286);
  const auto open = [&](int end, const Endpoint& at) {
    network.enter(end);
    return require(
        XdpPort::open(at, {.interface = VethPair::kInterface,
                           .attach = path == Path::native ? XdpPort::Attach::native : XdpPort::Attach::generic}));
  };
  if (path != Path::udp) {
    XdpPort asker = open(1, a), answerer = open(0, b);
    return round(asker, answerer, b, value_size, settings, times);
  }
  network.enter(1);
  UdpPort asker = require(UdpPort::open({.ip = a.ip, .port = a.port}));
  network.enter(0);
  UdpPort answerer = require(UdpPort::open({.ip = b.ip, .port = b.port}));
  round(asker, answerer, {.ip = b.ip, .port = b.port}, value_size, settings, times);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::vector<std::size_t> frames{64, 1088};
  CLI::App app{"kv_round_trip: UDP sockets and AF_XDP over a veth pair, taking turns, both ends spinning"};
  app.add_option("--rounds", settings.rounds, "of each")->capture_default_str();
  app.add_option("--messages", settings.messages, "in a round")->capture_default_str();
  app.add_option("--frames", frames, "bytes of a frame, 64 to 1088")->capture_default_str();
  app.add_flag("--one-thread", settings.one_thread, "does the work of both ends: what it costs, on a busy machine too");
  wherry::parse_command_line(app, argc, argv);
  std::string why;
  const auto network = VethPair::make(&why);
  if (!network) {
    fmt::print(stderr, "kv_round_trip: {}\n", why);
    return 1;
  }
  if (const std::vector<int> cores = allowed_cores(); cores.size() > 1)
    (void)pin_thread({cores[0]});
  else if (!settings.one_thread)
    fmt::print("one core: the ends take turns on it, and the figures mean little\n");
  for (const std::size_t frame : frames) {
    if (frame < kHeaderBytes || frame > kHeaderBytes + kMaxValueBytes) continue;
    std::map<Path, Times> times;
    for (int i = 0; i < settings.rounds; ++i)
      for (const Path path : kPaths) round(*network, path, frame - kHeaderBytes, settings, times[path]);
    for (const Path path : kPaths) {
      const Times& t = times[path];
      std::vector<double> ratios;  // of neighbours in time
      for (std::size_t i = 0; i < t.medians.size(); ++i) ratios.push_back(times[Path::udp].medians[i] / t.medians[i]);
      fmt::print("{:4} B  {:14}  p50 {:6.2f} us  p99 {:6.2f} us  lost {}  UDP over it {:.2f} ({:.2f} to {:.2f})\n",
                 frame, kNames[static_cast<std::size_t>(path)], quantile(t.us, 0.5), quantile(t.us, 0.99), t.lost,
                 quantile(ratios, 0.5), quantile(ratios, 0), quantile(ratios, 1));
    }
  }
  return 0;
}
