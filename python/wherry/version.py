# SPDX-License-Identifier: Apache-2.0
"""The version of this package, which is equal to the version in CMakeLists.txt."""

VERSION = "0.1.0"
