// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <cmath>

#include "common/npy.hpp"
#include "common/options.hpp"
#include "common/program.hpp"
#include "common/random.hpp"
#include "common/together.hpp"
#include "sssp/sssp.hpp"

namespace {

constexpr const char* kAbout =
    "Shortest paths from one vertex to all others, over edges with weights of zero or more, in a graph whose vertices "
    "are\n"
    "spread over the ranks. By delta-stepping: to follow an edge is a message (16 bytes) to the rank that owns its "
    "end.\n"
    "A file's matrix has an edge from its row to its column for each entry; a symmetric one has both directions.\n\n"
    "  sssp                                            65536 vertices, 16 edges from each\n"
    "  sssp --rows 1e6 --degree 8 --real --source 5    a larger one, with real weights\n"
    "  sssp --matrix road.mtx --output d               d.<rank>.npy: the distances, infinity where there is no way;\n"
    "                                                  vertex r + i * ranks is element i of rank r";

}  // namespace

int main(int argc, char** argv) {
  using namespace wherry::apps;
  Program program("sssp", kAbout);
  InputOptions input;
  std::uint64_t source = 1;
  double delta = 0;
  add_input_options(program.command_line(), input, "vertices", true);
  add_count(program.command_line(), "--source", source, "where the paths begin; the first vertex is 1", kMaxElements);
  add_number(program.command_line(), "--delta", delta,
             "width of a bucket; 0: the largest weight over the edges per vertex");

  return program.run(argc, argv, [&](Runtime& runtime, Report& report) -> wherry::Status {
    input.seed = program.seed();
    const auto edges = load(input, Shape::kWhole, runtime.rank(), runtime.ranks());
    wherry::Status loaded = edges.status();
    if (loaded && edges->rows() != edges->columns)
      loaded = {wherry::StatusCode::kInvalidArgument,
                fmt::format("a matrix of {} x {} is not a graph: want a square one", edges->rows(), edges->columns)};
    if (loaded && source > edges->rows())
      loaded = {wherry::StatusCode::kInvalidArgument,
                fmt::format("--source {}: there are {} vertices", source, edges->rows())};
    if (loaded = together(runtime, std::move(loaded)); !loaded) return loaded;
    const auto paths = shortest_paths(runtime, *edges, source - 1, delta);
    if (!paths) return paths.status();

    std::uint64_t reached = 0;
    for (std::uint64_t i = 0; i < edges->local_rows(); ++i) {
      reached += std::isfinite(paths->distance[i]) ? 1 : 0;
      report.checksum += fingerprint(edges->row(i), paths->distance[i]);
    }
    const auto count = runtime.reduce(std::uint64_t{edges->indices.size()}), all_reached = runtime.reduce(reached);
    if (!count || !all_reached) return runtime.status();
    report.seconds = paths->seconds;
    report.work = {"edge", "edges", *count};
    report.fields = {{"vertices", edges->rows()}, {"edges", *count},           {"source", source},
                     {"reached", *all_reached},   {"buckets", paths->buckets}, {"delta", paths->delta}};
    if (program.output().empty()) return {};
    return together(runtime, write_npy(part_name(program.output(), runtime.rank(), ".npy"), paths->distance));
  });
}
