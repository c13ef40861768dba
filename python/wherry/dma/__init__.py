# SPDX-License-Identifier: Apache-2.0
"""dma: registers of the engine that moves data between host memory and a card."""
