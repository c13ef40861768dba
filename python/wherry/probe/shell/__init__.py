# SPDX-License-Identifier: Apache-2.0
"""Compares the shell of thesis 003, simulated by sim/shell, with the thesis's Tables 5.1 to 5.6 and 5.12
(docs/design/shell-model.md)."""
