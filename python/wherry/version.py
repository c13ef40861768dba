# SPDX-License-Identifier: Apache-2.0
"""The version of this package: that of CMakeLists.txt."""

VERSION = "0.1.0"
