// SPDX-License-Identifier: Apache-2.0
#include "common/options.hpp"
#include "common/program.hpp"
#include "common/together.hpp"
#include "transpose/transpose.hpp"

namespace {

constexpr const char* kAbout =
    "Transposes a sparse matrix whose rows are spread over the ranks. Each entry is sent twice to the rank that owns "
    "its\n"
    "column: first as a count (4 bytes), so that all know where their rows begin, then as itself (16 bytes).\n\n"
    "  transpose                                       65536 rows of 16 entries each\n"
    "  transpose --rows 1e6 --degree 10 --real         a larger one, with real values\n"
    "  transpose --matrix in.mtx --output out          out.<rank>.mtx: their sum is the transpose";

}  // namespace

int main(int argc, char** argv) {
  using namespace wherry::apps;
  Program program("transpose", kAbout);
  InputOptions input;
  add_input_options(program.command_line(), input, "rows", true);

  return program.run(argc, argv, [&](Runtime& runtime, Report& report) -> wherry::Status {
    input.seed = program.seed();
    const auto matrix = load(input, Shape::kWhole, runtime.rank(), runtime.ranks());
    if (wherry::Status loaded = together(runtime, matrix.status()); !loaded) return loaded;
    const auto result = transpose(runtime, *matrix, input.distribution);
    if (!result) return result.status();
    const auto entries = runtime.reduce(std::uint64_t{matrix->indices.size()});
    if (!entries) return entries.status();

    report.checksum = checksum(result->matrix);
    report.work = {"entry", "entries", *entries};
    report.seconds = result->count_seconds + result->entry_seconds;
    report.fields = {{"rows", matrix->rows()},
                     {"columns", matrix->columns},
                     {"entries", *entries},
                     {"count_seconds", result->count_seconds},
                     {"entry_seconds", result->entry_seconds},
                     {"sort_seconds", result->sort_seconds}};
    if (program.output().empty()) return {};
    return together(runtime, save(result->matrix, program.output()));
  });
}
