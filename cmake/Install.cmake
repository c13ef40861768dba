# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: a prefix with headers, libwherry.so, wherryd, wherry-kv, wherry-bypass, wherry-probe, the command `wherry` with the Python package, and what
# find_package and pkg-config need. It names nothing of the checkout and of the build, which may go, and can be moved: libraries that
# came from wheels lie in LIBDIR/wherry/python, with the Python packages. Component `wherry` is ours, `others` are
# the Python packages of others; tools/wheel.py makes a wheel of the first. `pip install .` (scikit-build-core sets SKBUILD) takes only what
# belongs into the package: wherry/_native/*.so and wherry/_bin.

if(SKBUILD)
  # In a wheel everything lies side by side in site-packages; paths of this machine have no business there.
  if(NOT TARGET _core)
    message(FATAL_ERROR "a wheel needs the Python module: set WHERRY_PYTHON to ON")
  endif()
  set_target_properties(_core _kv_core PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}"
                        INSTALL_RPATH "$ORIGIN/../../libucx/lib;$ORIGIN/../../pyarrow")
  set_target_properties(wherryd wherry-probe PROPERTIES INSTALL_RPATH "$ORIGIN/../../libucx/lib;$ORIGIN/../../pyarrow")
  install(TARGETS _core _kv_core LIBRARY DESTINATION wherry/_native)
  install(TARGETS wherryd wherry-kv wherry-bypass wherry-probe RUNTIME DESTINATION wherry/_bin)
  return()
endif()
if(WHERRY_FUZZ)
  return()
endif()
if(WHERRY_PORTABLE)
  foreach(_target wherry wherryd wherry-kv wherry-bypass wherry-probe wherry_mpi _core _kv_core app_histogram_main)
    if(TARGET ${_target})
      wherry_portable(${_target})
    endif()
  endforeach()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_package "${CMAKE_INSTALL_LIBDIR}/cmake/wherry")
set(_build "${CMAKE_CURRENT_BINARY_DIR}/package")

set(_python "${CMAKE_INSTALL_LIBDIR}/wherry/python")

# wherry_installed(TARGET FOLDER): finds the wheels' libraries from where it is installed, FOLDER below the prefix.
function(wherry_installed target folder)
  file(RELATIVE_PATH _to "/prefix/${folder}" "/prefix/${_python}")
  string(REGEX REPLACE "/$" "" _to "${_to}")
  set(_rpath "")
  foreach(_library ${WHERRY_WHEEL_LIBRARIES})
    list(APPEND _rpath "$ORIGIN/${_to}/${_library}")
  endforeach()
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "${_rpath}")
endfunction()

install(TARGETS wherry LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
wherry_installed(wherry "${CMAKE_INSTALL_LIBDIR}")
install(TARGETS wherry-kv wherry-bypass wherry-probe RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
wherry_installed(wherry-probe "${CMAKE_INSTALL_BINDIR}")
if(WHERRY_AGENT)
  install(TARGETS wherryd RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  wherry_installed(wherryd "${CMAKE_INSTALL_BINDIR}")
endif()

if(TARGET app_histogram_main)  # `wherry demo` runs it
  install(TARGETS app_histogram_main RUNTIME DESTINATION "${CMAKE_INSTALL_LIBDIR}/wherry/apps")
  wherry_installed(app_histogram_main "${CMAKE_INSTALL_LIBDIR}/wherry/apps")
endif()

if(WHERRY_PYTHON)
  install(TARGETS _core _kv_core LIBRARY DESTINATION "${_python}/wherry/_native")
  wherry_installed(_core "${_python}/wherry/_native")
  wherry_installed(_kv_core "${_python}/wherry/_native")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/wherry" DESTINATION "${_python}"
          PATTERN "__pycache__" EXCLUDE PATTERN "*.so" EXCLUDE)
  file(RELATIVE_PATH _to_python "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${_python}")
  file(CONFIGURE OUTPUT "${_build}/wherry" @ONLY CONTENT [=[
#!/usr/bin/env python@Python_VERSION_MAJOR@.@Python_VERSION_MINOR@
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "@_to_python@"))
from wherry.__main__ import main

sys.exit(main())
]=])
  install(PROGRAMS "${_build}/wherry" DESTINATION "${CMAKE_INSTALL_BINDIR}")
  # Where the package looks for the programs, as in a wheel.
  file(RELATIVE_PATH _to_bin "/prefix/${_python}/wherry/_bin" "/prefix/${CMAKE_INSTALL_BINDIR}")
  install(CODE "
    set(_target \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_python}\")
    file(MAKE_DIRECTORY \"\${_target}/wherry/_bin\")
    foreach(_program wherryd wherry-kv wherry-bypass wherry-probe)
      file(CREATE_LINK \"${_to_bin}/\${_program}\" \"\${_target}/wherry/_bin/\${_program}\" SYMBOLIC)
    endforeach()")
  install(CODE "
    set(_target \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${_python}\")
    execute_process(COMMAND \"${Python_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/tools/bundle_python.py\"
                            \"${PROJECT_SOURCE_DIR}/pyproject.toml\" \"\${_target}\" COMMAND_ERROR_IS_FATAL ANY)"
    COMPONENT others)
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/wherry" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")

# Written by hand instead of install(EXPORT): that would make fmt, spdlog and UCX, which libwherry.so uses inside, known to every
# program that uses it.
file(WRITE "${_build}/wherry-config.cmake.in" [=[
# wherry::wherry: headers and libwherry.so, for C99 and C++20.
@PACKAGE_INIT@
if(NOT TARGET wherry::wherry)
  add_library(wherry::wherry SHARED IMPORTED)
  set_target_properties(wherry::wherry PROPERTIES
    IMPORTED_LOCATION "@PACKAGE_CMAKE_INSTALL_LIBDIR@/libwherry.so.@WHERRY_ABI_VERSION@"
    IMPORTED_SONAME "libwherry.so.@WHERRY_ABI_VERSION@"
    INTERFACE_INCLUDE_DIRECTORIES "@PACKAGE_CMAKE_INSTALL_INCLUDEDIR@")
  get_property(_wherry_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("CXX" IN_LIST _wherry_languages)
    set_property(TARGET wherry::wherry PROPERTY INTERFACE_COMPILE_FEATURES cxx_std_20)
  endif()
  unset(_wherry_languages)
endif()
set(wherry_WHERRYD "@PACKAGE_CMAKE_INSTALL_BINDIR@/wherryd")
check_required_components(wherry)
]=])
configure_package_config_file("${_build}/wherry-config.cmake.in" "${_build}/wherry-config.cmake" INSTALL_DESTINATION "${_package}"
                              PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_BINDIR)
write_basic_package_version_file("${_build}/wherry-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${_build}/wherry-config.cmake" "${_build}/wherry-config-version.cmake" DESTINATION "${_package}")

# Relative to the file itself, so that the prefix can be moved.
file(RELATIVE_PATH _up "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" _up "${_up}")
file(CONFIGURE OUTPUT "${_build}/wherry.pc" @ONLY CONTENT [=[
prefix=${pcfiledir}/@_up@
libdir=${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: wherry
Description: SmartNIC offload of data movement, straight into Apache Arrow
Version: @PROJECT_VERSION@
Libs: -L${libdir} -lwherry
Cflags: -I${includedir}
]=])
install(FILES "${_build}/wherry.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# For Environment Modules and Lmod.
set(_modules "${CMAKE_INSTALL_DATADIR}/modulefiles/wherry")
file(RELATIVE_PATH _to_prefix "/prefix/${_modules}" "/prefix")
configure_file("${PROJECT_SOURCE_DIR}/deploy/modulefiles/wherry.in" "${_build}/modulefile" @ONLY)
install(FILES "${_build}/modulefile" DESTINATION "${_modules}" RENAME "${PROJECT_VERSION}")
