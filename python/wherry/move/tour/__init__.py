# SPDX-License-Identifier: Apache-2.0
"""The part of `wherry demo` about move."""

from wherry.move.tour.frames import show as show
