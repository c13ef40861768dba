// SPDX-License-Identifier: Apache-2.0
// route_balance: the program that `wherry advise --calibrate` runs as the ranks of a job. The handlers of its messages
// touch random lines of a table that is far larger than any cache. The number of lines sets the ratio of memory
// accesses to communication (paper 001, section 5.0.1), so this ratio is known in advance.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/command_line.hpp"
#include "base/event_counter.hpp"
#include "base/random.hpp"
#include "base/try.hpp"
#include "huge.hpp"
#include "wherry/route.hpp"

namespace wherry::bench {
namespace {

using route::Runtime;
using Json = nlohmann::ordered_json;
constexpr std::size_t kWordsInLine = 8;

struct Options {
  std::vector<double> touches{0};
  double megabytes = 256;
  double messages = 4e6;
};

/// One rank.
class Kernel {
 public:
  Kernel(Runtime& runtime, const Options& options)
      : runtime_(runtime),
        messages_(options.messages),
        table_(huge_table(static_cast<std::size_t>(options.megabytes * 0x1p20) / 8)),
        lines_(table_.size() / kWordsInLine),
        small_(runtime.on<std::uint64_t>([this](const std::uint64_t& word) { work(word); })),
        large_(runtime.on<Large>([this](const Large& large) { work(large.words[0]); })) {}

  /// Measures with handlers that touch `touches` lines per message on average. The figures are sums over all ranks.
  Result<Json> point(double touches, bool large) {
    touches_ = touches;
    const double weight = (large ? 64 : 1) * (1 + touches);  // so that all points take about the same time
    const auto messages = static_cast<std::uint64_t>(messages_ / weight);
    WHERRY_TRY(runtime_.reduce(std::uint64_t{0}));
    const Reading before = read();
    for (std::uint64_t i = 0; i < messages; ++i) {
      const auto to = static_cast<route::Rank>((runtime_.rank() + 1 + i % others()) % runtime_.ranks());
      const std::uint64_t word = splitmix64(i);
      if (const Status sent = large ? send(to, large_, Large{{word}}) : send(to, small_, word); !sent) return sent;
    }
    if (Status done = runtime_.quiesce(); !done) return done;
    const Reading after = read();
    const auto difference = [&](std::uint64_t Reading::* field) { return after.*field - before.*field; };
    const auto all = [&](std::uint64_t mine, Runtime::Combine how) {
      const auto combined = runtime_.reduce(mine, how);
      return combined ? *combined : 0;  // else runtime_.status() is checked below
    };
    const auto sum = [&](std::uint64_t mine) { return all(mine, Runtime::Combine::kSum); };
    const std::uint64_t longest = all(difference(&Reading::ns), Runtime::Combine::kMax);
    const std::uint64_t uncounted = sum(counted_ ? 0 : 1);
    Json json{{"touches", touches},
              {"message_bytes", large ? sizeof(Large) : sizeof(std::uint64_t)},
              {"messages", sum(messages)},
              {"seconds", static_cast<double>(longest) * 1e-9},
              {"rank_seconds", static_cast<double>(sum(difference(&Reading::ns))) * 1e-9},
              {"cpu_seconds", static_cast<double>(sum(difference(&Reading::cpu_ns))) * 1e-9},
              {"blocked_seconds", static_cast<double>(sum(difference(&Reading::blocked_ns))) * 1e-9},
              {"bytes", sum(difference(&Reading::bytes))},
              {"touched", sum(difference(&Reading::touched))}};
    const std::uint64_t misses = sum(difference(&Reading::misses));
    json["cache_misses"] = uncounted == 0 ? Json(misses) : Json(nullptr);
    WHERRY_TRY(runtime_.status());
    return json;
  }

  [[nodiscard]] std::uint64_t found() const noexcept { return found_; }
  [[nodiscard]] const std::string& missing() const noexcept { return misses_.missing(); }

 private:
  struct Large {
    std::uint64_t words[511];  // with its header, 4 KiB
  };
  struct Reading {
    std::uint64_t ns, cpu_ns, blocked_ns, bytes, touched, misses;
  };

  [[nodiscard]] std::uint64_t others() const noexcept { return std::max<std::uint64_t>(1, runtime_.ranks() - 1); }

  template <typename T>
  Status send(route::Rank to, route::Handler<T> handler, const T& message) {
    StatusCode code;
    while ((code = runtime_.try_send(to, handler, message)) == StatusCode::kWouldBlock) runtime_.poll();
    return code == StatusCode::kOk ? Status() : runtime_.status();
  }

  void work(std::uint64_t word) noexcept {
    for (credit_ += touches_; credit_ >= 1; credit_ -= 1) {
      word = splitmix64(word);  // independent of the table: the core can have many misses in flight
      found_ += table_[((word >> 32) * lines_ >> 32) * kWordsInLine];
      ++touched_;
    }
  }

  Reading read() {
    timespec cpu{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    const route::Statistics statistics = runtime_.statistics();
    const auto misses = misses_.read();
    counted_ = misses.has_value();
    return {now_ns(),
            static_cast<std::uint64_t>(cpu.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(cpu.tv_nsec),
            statistics.blocked_ns,
            statistics.bytes_out - statistics.forwarded_bytes,
            touched_,
            misses.value_or(0)};
  }

  Runtime& runtime_;
  const double messages_;
  const std::span<std::uint64_t> table_;
  const std::uint64_t lines_;
  double touches_ = 0, credit_ = 0;
  std::uint64_t touched_ = 0, found_ = 0;
  bool counted_ = false;
  EventCounter misses_ = EventCounter::cache_misses();
  const route::Handler<std::uint64_t> small_;
  const route::Handler<Large> large_;
};

Status run(const Options& options) {
  WHERRY_ASSIGN(auto runtime, Runtime::start());
  Kernel kernel(runtime, options);
  Json points = Json::array();
  const auto add = [&](double touches, bool large) {
    WHERRY_ASSIGN(auto point, kernel.point(touches, large));
    points.push_back(std::move(point));
    return Status();
  };
  if (Status warm = add(0, false); !warm) return warm;  // not kept
  points.clear();
  for (const double touches : options.touches) {
    WHERRY_TRY(add(touches, false));
  }
  WHERRY_TRY(add(0, true));
  WHERRY_ASSIGN(const auto found, runtime.reduce(kernel.found()));  // or the compiler may leave the touching out
  if (runtime.rank() != 0) return {};
  const Json line{{"placement", to_string(runtime.placement())},
                  {"table_bytes", options.megabytes * 0x1p20 * runtime.ranks()},
                  {"cache_misses_missing", kernel.missing()},
                  {"found", found},
                  {"points", points}};
  fmt::print("{}\n", line.dump());
  return {};
}

}  // namespace
}  // namespace wherry::bench

int main(int argc, char** argv) {
  using namespace wherry::bench;
  CLI::App app("Messages with an adjustable share of memory accesses. Rank 0 ends with a line of JSON.",
               "route_balance");
  Options options;
  app.add_option("--touches", options.touches, "cache lines that the handler of a message touches, on average: a list")
      ->check(CLI::Range(0.0, 1e4))
      ->expected(1, -1);
  app.add_option("--table", options.megabytes, "MiB of each rank's table")->check(CLI::Range(1.0, 65536.0));
  app.add_option("--messages", options.messages, "messages of each rank; fewer if each takes longer")
      ->check(CLI::Range(1e3, 1e12));
  wherry::parse_command_line(app, argc, argv);
  const wherry::Status status = run(options);
  if (!status) fmt::print(stderr, "route_balance: {}\n", status.message());
  return status ? 0 : 1;
}
