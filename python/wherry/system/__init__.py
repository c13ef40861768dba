# SPDX-License-Identifier: Apache-2.0
"""The machine: paths, processes, ports, namespaces, private files, and checks of a caller's arguments."""
