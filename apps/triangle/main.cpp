// SPDX-License-Identifier: Apache-2.0
#include "common/npy.hpp"
#include "common/options.hpp"
#include "common/program.hpp"
#include "common/random.hpp"
#include "common/together.hpp"
#include "triangle/triangle.hpp"

namespace {

constexpr const char* kAbout =
    "Counts the triangles of an undirected graph whose vertices are spread over the ranks: for each pair of smaller\n"
    "neighbours of a vertex, a message (8 bytes) asks the owner of the larger one whether they are neighbours. A "
    "file's\n"
    "matrix is taken as a graph: directions, values and the diagonal do not count.\n\n"
    "  triangle                                        65536 vertices, each joined to up to 16 before it\n"
    "  triangle --matrix graph.mtx                     a graph from a Matrix Market file\n"
    "  triangle --rows 1e5 --degree 30 --output t      t.<rank>.npy: triangles in which a vertex is the middle one;\n"
    "                                                  vertex r + i * ranks is element i of rank r";

}  // namespace

int main(int argc, char** argv) {
  using namespace wherry::apps;
  Program program("triangle", kAbout);
  InputOptions input;
  add_input_options(program.command_line(), input, "vertices", false);

  return program.run(argc, argv, [&](Runtime& runtime, Report& report) -> wherry::Status {
    input.seed = program.seed();
    const auto lower = load(input, Shape::kLowerTriangle, runtime.rank(), runtime.ranks());
    if (wherry::Status loaded = together(runtime, lower.status()); !loaded) return loaded;
    const auto triangles = count_triangles(runtime, *lower);
    if (!triangles) return triangles.status();
    const auto edges = runtime.reduce(std::uint64_t{lower->indices.size()});
    if (!edges) return edges.status();

    for (std::uint64_t i = 0; i < lower->local_rows(); ++i)
      report.checksum += fingerprint(lower->row(i), triangles->at_vertex[i]);
    report.seconds = triangles->seconds;
    report.work = {"edge", "edges", *edges};
    report.fields = {{"vertices", lower->rows()}, {"edges", *edges}, {"triangles", triangles->total}};
    if (program.output().empty()) return {};
    return together(runtime, write_npy(part_name(program.output(), runtime.rank(), ".npy"), triangles->at_vertex));
  });
}
