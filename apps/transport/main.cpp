// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "common/npy.hpp"
#include "common/options.hpp"
#include "common/program.hpp"
#include "common/random.hpp"
#include "common/together.hpp"
#include "transport/transport.hpp"

namespace {

using namespace wherry::apps;
using Boundary = TransportOptions::Boundary;
using Source = TransportOptions::Source;

constexpr const char* kAbout =
    "Particles through matter, by Monte Carlo, on a 3D mesh that is cut into a box for each rank. They fly from facet "
    "to\n"
    "facet until they collide (are absorbed, scattered, or split a nucleus), escape, or the time step ends; one that\n"
    "enters another rank's box is a message (88 bytes). All results are integers, the same for any number of ranks.\n\n"
    "  transport                                       10^5 particles in 16 x 16 x 16 cells, until all have ended\n"
    "  transport --source beam --absorb 0.1 --scatter 0 --boundary vacuum,reflect,reflect\n"
    "                                                  a slab: exp(-0.1 * 16) of them get through\n"
    "  transport --steps 10 --step-time 2              in time steps, with particles in flight between them\n"
    "  transport --output t                            t.<rank>.cell.npy: the numbers of its cells, x + nx (y + ny "
    "z);\n"
    "                                                  .flux.npy, .collisions.npy: what was counted in them";

const std::map<std::string, Boundary> kBoundaries{{"vacuum", Boundary::kVacuum}, {"reflect", Boundary::kReflect}};
const std::map<std::string, Source> kSources{{"uniform", Source::kUniform}, {"beam", Source::kBeam}};

void add_options(CLI::App& cli, TransportOptions& options) {
  cli.add_option("--cells", options.mesh.cells, "cells along x, y, z")
      ->delimiter(',')
      ->check(CLI::Range(1u, 1u << 20))
      ->type_name("NX,NY,NZ")
      ->default_str("16,16,16");
  cli.add_option("--size", options.mesh.size, "of the mesh along x, y, z")
      ->delimiter(',')
      ->check(finite_range(1e-6, 1e9))
      ->type_name("X,Y,Z")
      ->default_str("16,16,16");
  cli.add_option("--boundary", options.boundary, "of the faces across x, y, z: vacuum or reflect")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(kBoundaries).description(""))
      ->type_name("KIND,KIND,KIND")
      ->default_str("vacuum,vacuum,vacuum");
  cli.add_option("--source", options.source,
                 "uniform: anywhere, into any direction; beam: from the face x = 0, along x")
      ->transform(CLI::CheckedTransformer(kSources).description(""))
      ->type_name("KIND")
      ->default_str("uniform");
  add_number(cli, "--absorb", options.absorb, "cross section of capture, per unit of length");
  add_number(cli, "--scatter", options.scatter, "cross section of scattering");
  add_number(cli, "--fission", options.fission, "cross section of fission");
  add_number(cli, "--neutrons", options.neutrons, "that a fission sets free, on average");
  add_count(cli, "--particles", options.particles, "that the source emits in each time step, over all ranks");
  add_count(cli, "--steps", options.steps, "time steps");
  add_number(cli, "--step-time", options.step_time, "length of a time step", 1e-9);
  add_number(cli, "--speed", options.speed, "of all particles", 1e-9);
}

Report report_of(const Transport& result, const TransportOptions& options) {
  const Mesh& mesh = options.mesh;
  const Tallies& totals = result.totals;
  Report report{.seconds = result.seconds, .work = {"particle", "particles", totals.emitted + totals.born}};
  for (std::uint64_t i = 0; i < result.cells.size(); ++i) {
    const CellTally& tally = result.cells[i];
    report.checksum += fingerprint(fingerprint(mesh.number(result.box.cell(i)), tally.track_length), tally.collisions);
  }
  const double track_length = static_cast<double>(totals.track_length) * track_unit(mesh);
  report.fields = {
      {"cells", mesh.cells},
      {"boxes", result.boxes},
      {"emitted", totals.emitted},
      {"born", totals.born},
      {"captured", totals.captured},
      {"fissions", totals.fissions},
      {"scattered", totals.scattered},
      {"escaped", totals.escaped},
      {"in_flight", totals.in_flight},
      {"facets", totals.facets},
      {"track_length", track_length},
      {"track_unit", track_unit(mesh)},
      {"flux", track_length / (mesh.size[0] * mesh.size[1] * mesh.size[2]) / static_cast<double>(totals.emitted)}};
  return report;
}

wherry::Status write(const Transport& result, const Mesh& mesh, const std::string& prefix, Rank rank) {
  std::vector<std::uint64_t> cell, flux, collisions;
  for (std::uint64_t i = 0; i < result.cells.size(); ++i) {
    cell.push_back(mesh.number(result.box.cell(i)));
    flux.push_back(result.cells[i].track_length);
    collisions.push_back(result.cells[i].collisions);
  }
  wherry::Status written = write_npy(part_name(prefix, rank, ".cell.npy"), cell);
  if (written) written = write_npy(part_name(prefix, rank, ".flux.npy"), flux);
  if (written) written = write_npy(part_name(prefix, rank, ".collisions.npy"), collisions);
  return written;
}

}  // namespace

int main(int argc, char** argv) {
  Program program("transport", kAbout);
  TransportOptions options;
  add_options(program.command_line(), options);

  return program.run(argc, argv, [&](Runtime& runtime, Report& report) -> wherry::Status {
    options.seed = program.seed();
    const auto result = simulate(runtime, options);
    if (!result) return result.status();
    report = report_of(*result, options);
    if (program.output().empty()) return {};
    return together(runtime, write(*result, options.mesh, program.output(), runtime.rank()));
  });
}
