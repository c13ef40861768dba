# SPDX-License-Identifier: Apache-2.0
"""probe: measures, simulates or models every path between host and card."""
