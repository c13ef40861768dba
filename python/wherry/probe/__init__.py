# SPDX-License-Identifier: Apache-2.0
"""probe: measures, simulates and models the ways between memories; the others configure themselves from it."""
