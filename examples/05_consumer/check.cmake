# SPDX-License-Identifier: Apache-2.0
# Run by ctest: installs WHERRY_BUILD into WORK/prefix, moves that, and builds and runs consumers of it: this project through
# find_package, the C example through pkg-config.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE _rc OUTPUT_VARIABLE _out ERROR_VARIABLE _out)
  if(NOT _rc EQUAL 0)
    list(JOIN ARGN " " _line)
    message(FATAL_ERROR "${_line}: ${_rc}\n${_out}")
  endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${WHERRY_BUILD}" --prefix "${WORK}/first")
file(RENAME "${WORK}/first" "${WORK}/prefix")

unset(ENV{WHERRY_WHERRYD})  # the installed wherryd is to be found
unset(ENV{WHERRY_AGENT})
run("${CMAKE_COMMAND}" -G "${GENERATOR}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${WORK}/build" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
    "-DCMAKE_CXX_COMPILER=${CXX}")
run("${CMAKE_COMMAND}" --build "${WORK}/build")
run("${WORK}/build/consumer")

set(ENV{PKG_CONFIG_PATH} "${WORK}/prefix/${LIBDIR}/pkgconfig")
execute_process(COMMAND pkg-config --cflags --libs wherry OUTPUT_VARIABLE _flags COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(_flags UNIX_COMMAND "${_flags}")
run("${CC}" -std=c99 "${CMAKE_CURRENT_LIST_DIR}/../04_c_abi/c_abi.c" -o "${WORK}/c_abi" ${_flags}
    "-Wl,-rpath,${WORK}/prefix/${LIBDIR}")
set(ENV{WHERRY_AGENT} embedded)
run("${WORK}/c_abi")
