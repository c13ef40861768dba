// SPDX-License-Identifier: Apache-2.0
// kv_core_differential: checks whether the Verilated core and the software node react equally to the same frames.
// docs/project/kv-testing.md.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/command_line.hpp"
#include "sim/lives.hpp"
#include "sim/traffic.hpp"

namespace {

using namespace wherry::kv::rtl;

/// Sorted, so that the same corpus gives the same run.
std::vector<Frame> frames_in(const std::vector<std::string>& directories) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& directory : directories)
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      if (entry.is_regular_file()) paths.push_back(entry.path());
  std::ranges::sort(paths);
  std::vector<Frame> frames;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    Frame frame(bytes.size());
    std::ranges::transform(bytes, frame.begin(), [](char c) { return static_cast<std::byte>(c); });
    frames.push_back(frame);
  }
  return frames;
}

/// One of four shapes: alone or one of three, `accept` or `store`; streams and memory are random. Two of three seeds
/// begin with versions that lag and are about to wrap. Every second seed answers only some sources.
PairOptions options_of(std::uint64_t seed, std::uint8_t bucket_bits = 8, const std::string& fault = "none") {
  wherry::kv::sim::Random random(seed);
  PairOptions options{
      .seed = seed, .nodes = seed % 4 == 3 ? 1U : 3U, .accept = seed % 2 == 0, .bucket_bits = bucket_bits};
  // The sources are nodes 0 to 3 and the client.
  if (seed % 2 != 0) options.sources = {{.ip = 0x0a000000, .mask = ~3U}, {.ip = 0x0a000064, .mask = ~0U}};
  if (seed % 3 != 0) options.versions = wherry::kv::sim::old_versions(seed);
  options.core.faults.ignore_other_flights = fault == "ignore_other_flights";
  options.core.seed = random.next();
  options.core.memory = random.below(2) == 0 ? kHbmHardware : kHbmSimulated;
  options.core.memory.jitter = random.below(2) * 40;
  for (StreamOptions* stream : {&options.core.net, &options.core.host})
    *stream = {.gaps = random.below(2) * 200'000, .stalls = random.below(2) * 300'000};
  return options;
}

/// Options as a machine of a cluster has them, so that the seed alone determines a life.
LifeOptions life_of(std::uint64_t seed, std::uint32_t steps, unsigned bucket_bits, const std::string& fault) {
  LifeOptions options{.seed = seed, .steps = steps, .bucket_bits = bucket_bits, .core = options_of(seed).core};
  options.core.faults.forget_unsettled = fault == "forget_unsettled";
  return options;
}

void live(std::uint64_t seed, std::uint64_t count, std::uint32_t steps, unsigned bucket_bits,
          const std::string& fault) {
  for (const std::uint64_t end = seed + count; seed < end; ++seed) {
    const LifeCounts c = Life(life_of(seed, steps, bucket_bits, fault)).run();
    fmt::print("life {}: {} epochs, {} deaths, {} returns, {} leftovers seen, {} lanes not to be told, {} answers\n",
               seed, c.epochs, c.deaths, c.returns, c.leftovers, c.unsettled, c.answers);
  }
}

void write_corpus(const std::string& directory) {
  Pair pair(options_of(1));
  Traffic traffic(pair, 1, 3);
  for (std::uint32_t i = 0; i < kSpoils; ++i) {
    const auto spoil = static_cast<Spoil>(i);
    const Frame frame = traffic.example(spoil);
    std::ofstream out(std::filesystem::path(directory) / name_of(spoil), std::ios::binary);
    out.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Gives the Verilated kv core and the software node the same frames; ends with 1 at the first difference"};
  std::uint64_t seed = 1, count = 4, rounds = 300, lives = 0;
  std::uint32_t steps = 40;
  std::string fault = "none";
  unsigned bucket_bits = 8;
  std::vector<std::string> corpora;
  std::string examples;
  app.add_option("--seed", seed, "first seed")->capture_default_str();
  app.add_option("--count", count, "seeds")->capture_default_str();
  app.add_option("--rounds", rounds, "of one to eight frames, for each seed")->capture_default_str();
  app.add_option("--bucket-bits", bucket_bits, "2^n buckets: from 9 on a key has several")
      ->capture_default_str()
      ->check(CLI::Range(8U, 14U));
  app.add_option("--lives", lives, "lives of a cluster, epochs and all, instead");
  app.add_option("--steps", steps, "of each life")->capture_default_str();
  app.add_option("--fault", fault, "of the core, which must be found: forget_unsettled by a life, the other without")
      ->check(CLI::IsMember({"none", "forget_unsettled", "ignore_other_flights"}));
  app.add_option("--corpus", corpora, "directories, each file of which is a frame")->check(CLI::ExistingDirectory);
  app.add_option("--write-corpus", examples, "only write a frame of each kind of trouble there")
      ->check(CLI::ExistingDirectory);
  wherry::parse_command_line(app, argc, argv);
  if (!examples.empty()) return write_corpus(examples), 0;

  if (lives != 0) return live(seed, lives, steps, bucket_bits, fault), 0;

  const std::vector<Frame> corpus = frames_in(corpora);
  for (std::uint64_t end = seed + count; seed < end; ++seed) {
    const PairOptions options = options_of(seed, static_cast<std::uint8_t>(bucket_bits), fault);
    Pair pair(options);
    Traffic traffic(pair, seed, options.nodes);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      traffic.round();
      // Puts corpus frames between good frames; each seed uses another part of the corpus.
      if (i < corpus.size()) traffic.replay(corpus[(i + seed * rounds) % corpus.size()]);
    }
    traffic.read_back();
    std::string statuses;
    for (std::uint8_t i = 0; i < 16; ++i) {
      const auto status = static_cast<wherry::kv::Status>(i);
      if (pair.replies(status) != 0) statuses += fmt::format(" {} {}", name_of(status), pair.replies(status));
    }
    fmt::print("seed {}: {} frames, {} more reads redirected by the core, {} locations refreshed; answers:{}\n", seed,
               pair.frames(), pair.redirected(), pair.refreshed(), statuses);
  }
  return 0;
}
