# SPDX-License-Identifier: Apache-2.0
"""move's part of `wherry demo`."""

from wherry.move.tour.frames import show as show
