# SPDX-License-Identifier: Apache-2.0
# libwherry.so: the client with its C and C++ interfaces, for programs that are not built with Wherry; and its test.

target_sources(wherry_move_client PRIVATE move/client/c_api.cpp)

if(NOT WHERRY_FUZZ)
  file(STRINGS "${CMAKE_SOURCE_DIR}/include/wherry/wherry.h" _abi REGEX "^#define WHERRY_ABI_VERSION [0-9]+$")
  string(REGEX MATCH "[0-9]+$" WHERRY_ABI_VERSION "${_abi}")

  # What is not WHERRY_API is hidden already; the script also holds back what templates of fmt, spdlog and the standard library
  # bring along, which other copies in the same process would otherwise be mixed up with.
  set(_script "${CMAKE_CURRENT_BINARY_DIR}/wherry.map")
  file(CONFIGURE OUTPUT "${_script}" CONTENT
"WHERRY_${WHERRY_ABI_VERSION} {
  global:
    wherry_*;
    convey_*;
    extern \"C++\" { wherry::*; };
  local: *;
};
")

  # From the objects, not the archives: those would only give what something in here already refers to.
  add_library(wherry SHARED $<TARGET_OBJECTS:wherry_base> $<TARGET_OBJECTS:wherry_fabric> $<TARGET_OBJECTS:wherry_move_client>
              $<TARGET_OBJECTS:wherry_route> $<TARGET_OBJECTS:wherry_kv_frame> $<TARGET_OBJECTS:wherry_kv_udp> $<TARGET_OBJECTS:wherry_kv_xdp>
              $<TARGET_OBJECTS:wherry_kv_control> $<TARGET_OBJECTS:wherry_kv_client>)
  add_library(wherry::wherry ALIAS wherry)
  set_target_properties(wherry PROPERTIES OUTPUT_NAME wherry VERSION ${PROJECT_VERSION} SOVERSION ${WHERRY_ABI_VERSION}
                        LINKER_LANGUAGE CXX LINK_DEPENDS "${_script}")
  target_link_options(wherry PRIVATE "LINKER:--version-script=${_script}")
  if(NOT WHERRY_SANITIZE)
    target_link_options(wherry PRIVATE "LINKER:--no-undefined")
  endif()
  target_include_directories(wherry INTERFACE "$<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>" "$<INSTALL_INTERFACE:include>")
  target_link_libraries(wherry PRIVATE wherry_options fmt::fmt spdlog::spdlog Threads::Threads wherry_ucx
                        nlohmann_json::nlohmann_json tomlplusplus::tomlplusplus OpenSSL::SSL ${CMAKE_DL_LIBS})

  # The C half of the test is C99 with warnings of its own: those of the house are for C++.
  wherry_test(c_api_test SOURCES agent/c_api_test.cpp LIBS wherry_agent wherry_arrow_flight)
  if(TARGET c_api_test)
    add_library(c_api_test_c OBJECT move/client/c_api_test.c)
    set_target_properties(c_api_test_c PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    target_compile_options(c_api_test_c PRIVATE -Wall -Wextra -Wpedantic -Werror)
    target_include_directories(c_api_test_c PRIVATE "${CMAKE_SOURCE_DIR}/include")
    if(WHERRY_SANITIZE)
      target_compile_options(c_api_test_c PRIVATE -fsanitize=${WHERRY_SANITIZE} -fno-omit-frame-pointer)
    endif()
    target_sources(c_api_test PRIVATE $<TARGET_OBJECTS:c_api_test_c>)
    add_dependencies(c_api_test wherry)
    target_compile_definitions(c_api_test PRIVATE WHERRY_LIBRARY="$<TARGET_FILE:wherry>"
                               WHERRY_HEADER="${CMAKE_SOURCE_DIR}/include/wherry/wherry.h")
  endif()
endif()

# GCC 12 takes std::regex's internals for uninitialised under AddressSanitizer (PR105562); and Arrow's own accessors read buffers that
# Flight delivers misaligned (apache/arrow#32276).
set_property(SOURCE agent/c_api_test.cpp APPEND PROPERTY COMPILE_OPTIONS -Wno-maybe-uninitialized -fno-sanitize=alignment)

# Ranks in C for python/tests/test_convey.py, and for AddressSanitizer: programs of users, which know no more than the headers and
# the library.
if(NOT WHERRY_FUZZ AND NOT WHERRY_SANITIZE STREQUAL "thread" AND NOT SKBUILD)
  foreach(_test convey/histogram convey/gather convey/elastic convey/steady convey/fork client/c_api client/order)
    string(REPLACE "/" "_" _name "route_${_test}")
    add_executable(${_name} route/${_test}_test.c)
    set_target_properties(${_name} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    target_compile_options(${_name} PRIVATE -Wall -Wextra -Wpedantic -Werror)
    target_include_directories(${_name} PRIVATE "${CMAKE_SOURCE_DIR}/include/wherry/compat")
    target_link_libraries(${_name} PRIVATE wherry)
    if(WHERRY_SANITIZE)
      target_compile_options(${_name} PRIVATE -fsanitize=${WHERRY_SANITIZE} -fno-omit-frame-pointer)
      target_link_options(${_name} PRIVATE -fsanitize=${WHERRY_SANITIZE})
      wherry_sanitizer_shim(${_name})
      wherry_add_test(${_name} 120 "${WHERRY_VENV}/bin/python" -m wherry.cli run --nodes 2 --ranks-per-node 1 --timeout 100 --
                      "$<TARGET_FILE:${_name}>")
      set_property(TEST ${_name} APPEND PROPERTY ENVIRONMENT "PYTHONPATH=${CMAKE_SOURCE_DIR}/python")
    endif()
  endforeach()
endif()
