# SPDX-License-Identifier: Apache-2.0
"""Written by tools/generate_spec.py from spec/: the registers of the DMA engine."""
