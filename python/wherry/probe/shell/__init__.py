# SPDX-License-Identifier: Apache-2.0
"""The shell of thesis 003, simulated by sim/shell, beside its Tables 5.1 to 5.6 and 5.12
(docs/design/shell-model.md)."""
