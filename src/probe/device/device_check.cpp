// SPDX-License-Identifier: Apache-2.0
// wherry-probe-device runs rounds of transfers on every present device path, and
// verifies each byte. It reports which paths are right, wrong or absent; `wherry probe
// run` measures speeds. It is for a new card, and for the guest of tools/guest/probe.py.
//
//     wherry-probe-device run [PREFIX...]          paths whose name begins so; all without one
//     wherry-probe-device fill TARGET SEED         the pattern into a BAR: FUNCTION/BAR:BASE+BYTES
//     wherry-probe-device compare TARGET SEED      a BAR with the pattern
//
// Exit status: 0: all data right; 1: wrong data or an error; 2: no path was run, or an argument was wrong.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/settings.hpp"
#include "base/try.hpp"
#include "probe/device/device_paths.hpp"
#include "probe/device/mapped_bar.hpp"
#include "probe/device/places.hpp"
#include "probe/pattern.hpp"

namespace wherry::probe {
namespace {

constexpr std::chrono::seconds kPatience{60};
constexpr unsigned kTransfers = 5;  // of a round: more than the depth

/// Runs one round, and verifies its bytes.
Status round(Path& path, const Shape& shape, std::uint64_t seed) {
  WHERRY_TRY(path.open(shape));
  path.prepare(seed);
  std::vector<unsigned> free(shape.depth), done(shape.depth);
  std::iota(free.begin(), free.end(), 0U);
  const Deadline deadline(kPatience);
  for (unsigned posted = 0, ended = 0; ended < kTransfers;) {
    if (deadline.passed()) return {StatusCode::kDeadlineExceeded, "transfers do not end"};
    while (posted < kTransfers && !free.empty() && path.try_post(free.back())) {
      free.pop_back();
      ++posted;
    }
    WHERRY_ASSIGN(const unsigned found, path.poll(done));
    free.insert(free.end(), done.begin(), done.begin() + found);
    ended += found;
  }
  return path.verify(seed);
}

/// Candidate shapes: at least one is accepted for each size, depth, direction and notice of any path.
std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const Flow flow : {Flow::kH2C, Flow::kC2H, Flow::kBoth})
    for (const std::size_t bytes : {4U, 8U, 64U, 1000U, 2048U, 65536U}) {
      all.push_back({.bytes = bytes, .flow = flow});
      all.push_back(
          {.bytes = bytes, .depth = 4, .pattern = Pattern::kRandom, .flow = flow, .notice = Notice::kBlocking});
    }
  return all;
}

bool run(Path& path, bool& ran) {
  const PathInfo& info = path.info();
  if (!info.absent.empty()) {
    fmt::print("ABSENT {}: {}\n", info.id, info.absent);
    return true;
  }
  unsigned done = 0;
  std::uint64_t seed = 0;
  for (const Shape& shape : shapes()) {
    if (!path.accepts(shape).ok()) continue;
    const Status status = round(path, shape, ++seed);
    path.close();
    if (!status.ok()) {
      fmt::print("WRONG {} {} bytes, depth {}: {}\n", info.id, shape.bytes, shape.depth, status.message());
      return false;
    }
    ++done;
  }
  if (done == 0) {
    fmt::print("WRONG {}: it accepts none of the shapes\n", info.id);
    return false;
  }
  ran = true;
  fmt::print("RIGHT {}: {} rounds; {} to {}, started by {}\n", info.id, done, info.from, info.to,
             info.initiator == Initiator::kHost ? "the host" : "the device");
  std::fflush(stdout);
  return true;
}

int run_all(const std::vector<std::string>& prefixes) {
  bool right = true, ran = false;
  for (const auto& path : device_paths()) {
    const auto begins = [&](const std::string& prefix) { return path->info().id.starts_with(prefix); };
    if (prefixes.empty() || std::any_of(prefixes.begin(), prefixes.end(), begins)) right = run(*path, ran) && right;
  }
  return !right ? 1 : ran ? 0 : 2;
}

/// Works on single bytes, so the range may have any size.
int pattern(bool fill, const std::string& text, const std::string& seed_text) {
  const auto go = [&]() -> Status {
    WHERRY_ASSIGN(const Target target, parse_target(text));
    WHERRY_ASSIGN(const std::uint64_t seed, parse_number(seed_text, 0, ~std::uint64_t{0}));
    WHERRY_ASSIGN(const BarFile file, find_bar("/sys", target, false));
    WHERRY_ASSIGN(const MappedBar bar, MappedBar::map(file));
    std::vector<std::byte> bytes(target.bytes);
    if (fill) {
      fill_pattern(bytes, seed, 0);
      for (std::size_t i = 0; i < bytes.size(); ++i) bar.at()[i] = bytes[i];
      return {};
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = bar.at()[i];
    const Difference found = compare_pattern(bytes, seed, 0, false);
    if (found.count == 0) return {};
    return {StatusCode::kInternal, fmt::format("{} bytes differ, the first at {}", found.count, found.first)};
  };
  const Status status = go();
  fmt::print("{} {}: {}\n", status.ok() ? "RIGHT" : "WRONG", fill ? "fill" : "compare",
             status.ok() ? text : status.message());
  return status.ok() ? 0 : 1;
}

int main_of(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "run") return run_all({arguments.begin() + 1, arguments.end()});
  if (arguments.size() == 3 && (arguments[0] == "fill" || arguments[0] == "compare"))
    return pattern(arguments[0] == "fill", arguments[1], arguments[2]);
  std::fputs("wherry-probe-device run [PREFIX...] | fill TARGET SEED | compare TARGET SEED\n", stderr);
  return 2;
}

}  // namespace
}  // namespace wherry::probe

int main(int argc, char** argv) { return wherry::probe::main_of({argv + 1, argv + argc}); }
