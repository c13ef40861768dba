// SPDX-License-Identifier: Apache-2.0
// The C interface of libwherry_mpi.so, which the library loads when an MPI launcher has started the program. Nothing of
// MPI in here: the library, and what is linked to it, can be had without any. One thread at a time.
#pragma once

#include <cstdint>

extern "C" {

/// Changes with any of the functions below.
#define WHERRY_MPI_PLUGIN_VERSION 2

enum WherryMpiOutcome : int { kWherryMpiOk = 0, kWherryMpiFailed = 1, kWherryMpiLate = 2 };

/// WHERRY_MPI_PLUGIN_VERSION of the plugin.
std::uint32_t wherry_mpi_version();
/// "Open MPI" or "MPICH" (and what is binary compatible with it): what the plugin was compiled with; empty: another
/// one. Calls nothing of MPI.
const char* wherry_mpi_family();
/// Initialises MPI, unless the program has, and says who this process is in MPI_COMM_WORLD. Collective the first time;
/// may be called again. MPI that was initialised here is finalised at an exit with status 0; after any other it is left
/// to the launcher to end the other ranks.
/// kWherryMpiLate: not everybody came within `timeout_ms`; then no call will succeed any more.
int wherry_mpi_init(std::uint32_t* rank, std::uint32_t* ranks, std::uint64_t timeout_ms);
/// Collective: `all` becomes the contributions in the order of ranks, of `sizes[rank]` bytes each. kWherryMpiLate: not
/// everybody came within `timeout_ms`; then no call will succeed any more.
int wherry_mpi_allgatherv(const void* mine, const std::uint64_t* sizes, void* all, std::uint64_t timeout_ms);
/// Why the last call failed.
const char* wherry_mpi_error();
}
