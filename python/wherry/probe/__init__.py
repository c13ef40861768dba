# SPDX-License-Identifier: Apache-2.0
"""probe: every path between host and card, measured, simulated or modelled."""
