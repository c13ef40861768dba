# SPDX-License-Identifier: Apache-2.0
"""dma: the engine between host memory and a card; its registers."""
