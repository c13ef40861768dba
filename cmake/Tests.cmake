# SPDX-License-Identifier: Apache-2.0
# Programs that AddressSanitizer checks and that use UCX: see tools/sanitizer_shim.cpp.
function(wherry_sanitizer_shim target)
  if(WHERRY_SANITIZE MATCHES "address")
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tools/sanitizer_shim.cpp")
    target_link_options(${target} PRIVATE -Wl,--export-dynamic-symbol=process_vm_readv,--export-dynamic-symbol=process_vm_writev)
  endif()
endfunction()

option(WHERRY_ALL_TESTS "builds without sanitizers have those tests, too, that show no more there (docs/project/house.md)" ON)
set(WHERRY_LEFT "${PROJECT_BINARY_DIR}/left_to_asan.txt")  # tools/ctest_report.py asks whether it ran them
file(WRITE "${WHERRY_LEFT}" "")

# wherry_test(NAME SOURCES... LIBS... [THREADS] [OPTIMISED] [PLAIN]): one GoogleTest program that ctest runs as a whole, with a time limit.
# THREADS: it has some, so ThreadSanitizer runs it too. OPTIMISED: it is about what stands in headers, or computes for seconds itself.
# PLAIN: it shows more without a sanitizer than with one, or is not in a build with one. Neither: preset release leaves it to asan.
# The target `wherry_tests` is all of them, with the programs that they start.
add_custom_target(wherry_tests)
function(wherry_test name)
  cmake_parse_arguments(T "THREADS;OPTIMISED;PLAIN" "TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(NOT WHERRY_TESTS OR WHERRY_FUZZ OR (WHERRY_SANITIZE STREQUAL "thread" AND NOT T_THREADS))
    return()
  endif()
  if(NOT (WHERRY_ALL_TESTS OR WHERRY_SANITIZE OR T_OPTIMISED OR T_PLAIN))
    file(APPEND "${WHERRY_LEFT}" "${name}\n")
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE wherry_options ${T_LIBS} GTest::gtest GTest::gtest_main)
  wherry_sanitizer_shim(${name})
  if(WHERRY_MOLD)
    target_link_options(${name} PRIVATE -fuse-ld=mold)
  endif()
  add_dependencies(wherry_tests ${name})
  # What is under test keeps its optimisation and every check. The tests' own code, full of templates, would take twice as long to
  # compile with the former, four times with both.
  if(WHERRY_SANITIZE OR NOT T_OPTIMISED)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  wherry_add_test(${name} ${T_TIMEOUT} ${name})
endfunction()

option(WHERRY_ALL_SEEDS "sanitized tests run as many random seeds as others do, for many times as long" OFF)

# wherry_add_test(NAME TIMEOUT COMMAND...): what ctest runs, in the environment that UCX and the sanitizers need.
function(wherry_add_test name timeout)
  add_test(NAME ${name} COMMAND ${ARGN})
  math(EXPR timeout "${timeout} * 5")  # for what hangs: no test may fail because the machine is busy
  set(_env "UCX_LOG_LEVEL=fatal" "UCX_HANDLE_ERRORS=none" "WHERRY_PROFILE=off")
  if(WHERRY_SANITIZE AND NOT WHERRY_ALL_SEEDS)
    list(APPEND _env "FEW_SEEDS=1")  # memory and threads are what they look at; what the seeds find a release build finds
  endif()
  if(WHERRY_SANITIZE)
    # UCX patches mmap/munmap to watch for released memory; the sanitizers own those symbols.
    list(APPEND _env "UCX_MEM_EVENTS=n" "UCX_MEM_MMAP_HOOK_MODE=none"
         "ASAN_OPTIONS=detect_leaks=1:detect_container_overflow=0:handle_sigill=1"
         "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/lsan.supp:print_suppressions=0"
         "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
         "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/tsan.supp:ignore_noninstrumented_modules=1:halt_on_error=1:second_deadlock_stack=1")
  endif()
  if(timeout GREATER 1000)  # goes first: a build whose tests have not run knows no better, and ctest asks no other when it does
    set_tests_properties(${name} PROPERTIES COST ${timeout})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} ENVIRONMENT "${_env}"
                       ENVIRONMENT_MODIFICATION "PATH=path_list_append:${WHERRY_VENV}/bin")  # etcd, unpacked by tools/setup.sh
endfunction()

# wherry_plain_cases(TEST CASES...): cases that compute for long and go no other way through the code than the rest of the test: left out
# under a sanitizer, run by the release build, whose test of that name is OPTIMISED.
function(wherry_plain_cases test)
  if(WHERRY_SANITIZE AND NOT WHERRY_ALL_SEEDS AND TARGET ${test})
    list(JOIN ARGN ":" _cases)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "GTEST_FILTER=-${_cases}")
  endif()
endfunction()

# wherry_fuzz(NAME SOURCES... LIBS...): one libFuzzer target; tools/fuzz.sh runs all of them.
add_custom_target(fuzzers)
function(wherry_fuzz name)
  cmake_parse_arguments(T "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT WHERRY_FUZZ)
    return()
  endif()
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE wherry_options ${T_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer,address,undefined)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzzers")
  add_dependencies(fuzzers ${name})
endfunction()

# wherry_alone_in_unity(SOURCES...): files of this folder that builds which compile several files at once (CMAKE_UNITY_BUILD:
# presets release, asan, tsan) must not join: they have, in unnamed namespaces, names that others have, too, or import whole namespaces.
function(wherry_alone_in_unity)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# The C half of a test is C99 with warnings of its own: those of the house are for C++.
function(wherry_as_c99 target)
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  if(WHERRY_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${WHERRY_SANITIZE} -fno-omit-frame-pointer)
  endif()
endfunction()

# wherry_c_half(TEST SOURCE): a file in C99 that joins the test and sees the public headers only.
function(wherry_c_half test source)
  add_library(${test}_c OBJECT ${source})
  wherry_as_c99(${test}_c)
  target_include_directories(${test}_c PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_sources(${test} PRIVATE $<TARGET_OBJECTS:${test}_c>)
endfunction()

# wherry_rank_in_c(NAME SOURCE): a rank as its user would write it in C99, which knows no more than the headers and libwherry.so. It is for
# python/tests; AddressSanitizer runs it from ctest.
function(wherry_rank_in_c name source)
  if(WHERRY_FUZZ OR WHERRY_SANITIZE STREQUAL "thread" OR SKBUILD)
    return()
  endif()
  add_executable(${name} ${source})
  wherry_as_c99(${name})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include/wherry/compat")
  target_link_libraries(${name} PRIVATE wherry)
  if(WHERRY_SANITIZE)
    target_link_options(${name} PRIVATE -fsanitize=${WHERRY_SANITIZE})
    wherry_sanitizer_shim(${name})
    wherry_add_test(${name} 120 "${WHERRY_VENV}/bin/python" -m wherry.cli run --nodes 2 --ranks-per-node 1 --timeout 100 --
                    "$<TARGET_FILE:${name}>")
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/python")
  endif()
endfunction()
