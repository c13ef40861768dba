# SPDX-License-Identifier: Apache-2.0
# WHERRY_PORTABLE: programs that run on every Linux since glibc 2.28 and GCC 8's libstdc++, wherever they were built; for the wheel
# (`make wheel`, docs/start/install.md). The objects are those of an ordinary build; the linking differs:
#
# - fmt, spdlog, toml++, cpp-httplib and OpenSSL are linked statically.
# - Symbols of glibc newer than 2.28 are defined in the program (portable/glibc.c, portable/start.c).
# - What libstdc++ has gained since GCC 8 is linked statically, the rest of it is the system's, as Red Hat's toolsets do. All of it
#   statically would give wherryd two libstdc++, its own and that of Arrow, whose C++ interface hands streams, locales and exceptions across.
# - All of that is hidden: no other library of the process sees it.

# Members of libstdc++.a. None defines a std::locale::id or standard stream, of which a process may have one only.
set(WHERRY_NEWER_LIBSTDCXX
  fs_path.o fs_ops.o fs_dir.o          # std::filesystem, GLIBCXX_3.4.26 (before, it was a library of its own)
  memory_resource.o                    # std::pmr, 3.4.26 and 3.4.28
  condition_variable.o                 # wait(), 3.4.30
  functexcept.o                        # __throw_bad_array_new_length(), 3.4.29
  cow-stdexcept.o                      # moved runtime_error, 3.4.26
  sstream-inst.o lt5-sstream-inst.o    # default constructors and str() const&, 3.4.26 and 3.4.29
  floating_from_chars.o                # 3.4.29
  eh_ptr.o                             # exception_ptr's counts, CXXABI_1.3.13
  snprintf_lite.o sso_string.o         # what those take, which libstdc++.so keeps to itself
)

enable_language(C)
set(_portable "${CMAKE_CURRENT_LIST_DIR}/portable")
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  message(FATAL_ERROR "WHERRY_PORTABLE is for GCC on x86-64")
endif()

# wherry_static(NAME SOURCE ALIAS): a static library in place of an installed one of that name.
function(wherry_static name source alias)
  add_library(${name} STATIC "${source}")
  target_compile_options(${name} PRIVATE -w)  # it is not our code
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  add_library(${alias} ALIAS ${name})
endfunction()

# Their users get the definitions of the shared ones, so that ccache has the objects of an ordinary build.
wherry_static(wherry_static_fmt "${_portable}/fmt.cpp" fmt::fmt)
target_compile_definitions(wherry_static_fmt PUBLIC FMT_SHARED)
wherry_static(wherry_static_spdlog "${_portable}/spdlog.cpp" spdlog::spdlog)
target_compile_definitions(wherry_static_spdlog PUBLIC SPDLOG_SHARED_LIB SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL)
target_link_libraries(wherry_static_spdlog PUBLIC Threads::Threads fmt::fmt)
wherry_static(wherry_static_toml "${_portable}/toml.cpp" tomlplusplus::tomlplusplus)
target_compile_options(wherry_static_toml PUBLIC -DTOML_HEADER_ONLY=0 -DTOML_SHARED_LIB=1)

# Debian's package has a header without the implementation, which takes the package's source (tools/httplib.sh). Without it, the shared
# library becomes a part of the wheel, which then runs on systems as new as the one it was built on only.
set(WHERRY_HTTPLIB_SOURCE "" CACHE PATH "folder with cpp-httplib's httplib.cc, made by its split.py, and httplib.h")
if(WHERRY_HTTPLIB_SOURCE)
  wherry_static(wherry_static_httplib "${WHERRY_HTTPLIB_SOURCE}/httplib.cc" PkgConfig::HTTPLIB)
  # zlib and brotli are for bodies that are compressed: ours are not. They change no class that others see.
  target_compile_options(wherry_static_httplib PRIVATE -DCPPHTTPLIB_OPENSSL_SUPPORT INTERFACE
    -DCPPHTTPLIB_OPENSSL_SUPPORT -DCPPHTTPLIB_ZLIB_SUPPORT -DCPPHTTPLIB_BROTLI_SUPPORT)
  find_package(OpenSSL REQUIRED)
  target_link_libraries(wherry_static_httplib PUBLIC Threads::Threads OpenSSL::SSL OpenSSL::Crypto)
endif()

execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libstdc++.a OUTPUT_VARIABLE _libstdcxx OUTPUT_STRIP_TRAILING_WHITESPACE)
string(MD5 _list "${WHERRY_NEWER_LIBSTDCXX}")
set(_newer "${CMAKE_CURRENT_BINARY_DIR}/portable/${_list}/libwherry_newer_stdcxx.a")
if(NOT EXISTS "${_newer}")
  cmake_path(GET _newer PARENT_PATH _made)
  file(MAKE_DIRECTORY "${_made}")
  execute_process(COMMAND "${CMAKE_AR}" x "${_libstdcxx}" ${WHERRY_NEWER_LIBSTDCXX} WORKING_DIRECTORY "${_made}" COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND "${CMAKE_AR}" rcs "${_newer}" ${WHERRY_NEWER_LIBSTDCXX} WORKING_DIRECTORY "${_made}" COMMAND_ERROR_IS_FATAL ANY)
endif()

foreach(_part glibc.c start.c libstdcxx.cpp)
  cmake_path(GET _part STEM _name)
  add_library(wherry_portable_${_name} OBJECT "${_portable}/${_part}")
  target_compile_options(wherry_portable_${_name} PRIVATE -Wall -Wextra -O2)
  set_target_properties(wherry_portable_${_name} PROPERTIES UNITY_BUILD OFF)
endforeach()

# wherry_portable(TARGET): links an installed program or module so.
function(wherry_portable target)
  target_link_libraries(${target} PRIVATE $<TARGET_OBJECTS:wherry_portable_glibc> $<TARGET_OBJECTS:wherry_portable_libstdcxx>
                        "-Wl,--whole-archive,${_newer},--no-whole-archive")
  get_target_property(_type ${target} TYPE)
  if(_type STREQUAL "EXECUTABLE")
    target_link_libraries(${target} PRIVATE $<TARGET_OBJECTS:wherry_portable_start>)
  endif()
  # Before 2.34, threads and dlopen were libraries of their own.
  target_link_options(${target} PRIVATE
    "LINKER:--exclude-libs,ALL,--gc-sections,--push-state,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,-l:librt.so.1,--pop-state")
endfunction()
