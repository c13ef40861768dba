// SPDX-License-Identifier: Apache-2.0 The C interface of libwherry_mpi.so, which the library loads if an MPI launcher
// has started the program. It uses no name of MPI, so the library can be built and used without MPI. One thread at a
// time.
#pragma once

#include <cstdint>

extern "C" {

/// Changes if any of the functions below does.
#define WHERRY_MPI_PLUGIN_VERSION 2

enum WherryMpiOutcome : int { kWherryMpiOk = 0, kWherryMpiFailed = 1, kWherryMpiLate = 2 };

/// WHERRY_MPI_PLUGIN_VERSION of the plugin.
std::uint32_t wherry_mpi_version();
/// The MPI that the plugin was compiled with: "Open MPI", or "MPICH" for that and binary compatible ones. Empty:
/// another one. Does not call MPI.
const char* wherry_mpi_family();
/// Initialises MPI, unless the program has, and says which rank of MPI_COMM_WORLD this process is. Collective the first
/// time; may be called again. exit(0) finalises an MPI that was initialised here. After another exit the launcher ends
/// the other ranks. kWherryMpiLate: some ranks did not come within `timeout_ms`, and no call can succeed any more.
int wherry_mpi_init(std::uint32_t* rank, std::uint32_t* ranks, std::uint64_t timeout_ms);
/// Collective: `all` becomes the contributions in the order of ranks, of `sizes[rank]` bytes each. kWherryMpiLate: as
/// above.
int wherry_mpi_allgatherv(const void* mine, const std::uint64_t* sizes, void* all, std::uint64_t timeout_ms);
/// Why the last call failed.
const char* wherry_mpi_error();
}
