// SPDX-License-Identifier: Apache-2.0
// The C interface of libwherry_mpi.so, which the library loads if an MPI launcher has started the program. It uses no
// MPI names, so the library can be built and used without MPI. One thread at a time.
#pragma once

#include <cstdint>

extern "C" {

/// Increment it if any function below changes.
#define WHERRY_MPI_PLUGIN_VERSION 2

enum WherryMpiOutcome : int { kWherryMpiOk = 0, kWherryMpiFailed = 1, kWherryMpiLate = 2 };

/// Returns WHERRY_MPI_PLUGIN_VERSION of the plugin.
std::uint32_t wherry_mpi_version();
/// The MPI with which the plugin was compiled: "Open MPI", or "MPICH" for MPICH and binary compatible libraries. Empty:
/// another MPI. Does not call MPI.
const char* wherry_mpi_family();
/// Initialises MPI if the program has not, and returns this process's rank in MPI_COMM_WORLD. Collective the first
/// time; may be called again. exit(0) finalises an MPI that was initialised here. After another exit the launcher ends
/// the other ranks. kWherryMpiLate: some ranks did not call this within `timeout_ms`; all later calls fail.
int wherry_mpi_init(std::uint32_t* rank, std::uint32_t* ranks, std::uint64_t timeout_ms);
/// Collective: fills `all` with the contributions in the order of ranks, of `sizes[rank]` bytes each. kWherryMpiLate:
/// as above.
int wherry_mpi_allgatherv(const void* mine, const std::uint64_t* sizes, void* all, std::uint64_t timeout_ms);
/// Why the last call failed.
const char* wherry_mpi_error();
}
