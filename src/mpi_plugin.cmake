# SPDX-License-Identifier: Apache-2.0
# libwherry_mpi.so (src/route/mpi_plugin), where there is an MPI: the one whose mpicc is on PATH, else the wheel's. For another,
# set MPI_C_COMPILER.

if(WHERRY_FUZZ OR WHERRY_SANITIZE OR SKBUILD)
  return()
endif()
if(NOT MPI_C_COMPILER)
  find_program(WHERRY_MPICC NAMES mpicc HINTS "${WHERRY_VENV}/bin")
  mark_as_advanced(WHERRY_MPICC)
  if(WHERRY_MPICC)
    set(MPI_C_COMPILER "${WHERRY_MPICC}")
  endif()
endif()
find_package(MPI QUIET COMPONENTS C)
if(NOT MPI_C_FOUND)
  message(STATUS "no MPI: without libwherry_mpi.so, ranks can be started by `wherry run` only")
  return()
endif()
message(STATUS "MPI plugin for ${MPI_C_LIBRARIES}")
add_library(wherry_mpi MODULE route/mpi_plugin/plugin.cpp)
target_link_libraries(wherry_mpi PRIVATE wherry_options MPI::MPI_C)
set_target_properties(wherry_mpi PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
