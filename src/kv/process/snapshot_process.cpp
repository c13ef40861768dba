// SPDX-License-Identifier: Apache-2.0
#include "kv/process/snapshot_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/clock.hpp"
#include "base/try.hpp"
#include "kv/control/cluster_file.hpp"
#include "kv/snapshot/dump.hpp"
#include "kv/snapshot/key_window.hpp"
#include "kv/snapshot/load.hpp"

namespace wherry::kv {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kReportNs = 200'000'000;

bool say(const Json& line) {
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const auto wrote = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

Progress reporter(const std::atomic<bool>& stop) {
  return [&stop, last = std::uint64_t{0}](const char* what, std::uint64_t done, std::uint64_t all) mutable {
    if (stop.load(std::memory_order_relaxed)) return false;
    const std::uint64_t now = now_ns();
    if (now - last < kReportNs) return true;
    last = now;
    return say({{"progress", what}, {"done", done}, {"of", all}});
  };
}

std::chrono::nanoseconds patience_of(const SnapshotProcessOptions& options) {
  return std::chrono::nanoseconds(std::llround(options.patience_s * 1e9));
}

Json to_json(const SnapshotHead& head, const SnapshotTail& tail) {
  return {{"cluster", head.cluster},
          {"epoch", head.epoch},
          {"node", head.node},
          {"source", head.source == SnapshotSource::hardware ? "hardware" : "software"},
          {"bucket_bits", head.bucket_bits},
          {"began_ns", head.began_ns},
          {"ended_ns", tail.ended_ns},
          {"keys", tail.records},
          {"value_bytes", tail.value_bytes}};
}

wherry::Status tell(const Json& result) {
  if (say({{"result", result}})) return {};
  return {StatusCode::kUnavailable, "the reader of the result has gone"};
}

}  // namespace

wherry::Status run_dump(const SnapshotProcessOptions& options, const std::atomic<bool>& stop) {
  WHERRY_ASSIGN(const ClusterFile cluster, load_cluster_file(options.cluster));
  DumpOptions what{.cluster = options.cluster,
                   .name = cluster.name,
                   .out = options.file,
                   .replace = options.replace,
                   .windows = {},
                   .patience = patience_of(options)};
  for (std::uint32_t number = 0; number < kMaxNodes; ++number)
    if (cluster.nodes[number].configured && options.node.value_or(number) == number)
      what.windows.push_back(key_window_path(options.cluster, number));
  if (what.windows.empty())
    return {StatusCode::kInvalidArgument,
            fmt::format("cluster '{}' has no node {}", cluster.name, options.node.value_or(0))};
  WHERRY_ASSIGN(const DumpResult done, dump(what, reporter(stop)));
  Json result = to_json(done.head, done.tail);
  result["listed"] = done.listed;
  result["gone"] = done.gone;
  return tell(result);
}

wherry::Status run_load(const SnapshotProcessOptions& options, const std::atomic<bool>& stop) {
  if (options.check) {
    WHERRY_ASSIGN(const SnapshotContent content, check_snapshot(options.file, reporter(stop)));
    return tell(to_json(content.head, content.tail));
  }
  WHERRY_ASSIGN(const ClusterFile cluster, load_cluster_file(options.cluster));
  LoadOptions what{.file = options.file,
                   .cluster = options.cluster,
                   .bucket_bits = cluster.bucket_bits,
                   .overwrite = options.overwrite,
                   .patience = patience_of(options)};
  if (options.lane) {
    what.first_lane = options.lane;
    what.lanes = 1;
  }
  WHERRY_ASSIGN(const LoadResult done, load(what, reporter(stop)));
  Json result = to_json(done.content.head, done.content.tail);
  result["loaded"] = done.loaded;
  result["skipped"] = done.skipped;
  result["no_room"] = done.no_room;
  result["without_room"] = done.without_room;
  result["end"] = done.end ? "all" : done.end.message();
  WHERRY_TRY(tell(result));
  WHERRY_TRY(done.end);
  if (done.no_room == 0) return {};
  return {StatusCode::kResourceExhausted,
          fmt::format("the table has no room for {} of {} keys (bucket_bits {}; buckets fill to 80 %): the others are "
                      "loaded",
                      done.no_room, done.content.tail.records, cluster.bucket_bits)};
}

}  // namespace wherry::kv
