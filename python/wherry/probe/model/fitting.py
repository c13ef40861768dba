# SPDX-License-Identifier: Apache-2.0
"""Fits six numbers to seven published values, by damped least squares (Levenberg-Marquardt) on relative errors.

The fit uses only its arguments and does not read files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import astuple
from typing import Any

from wherry.probe.model.memory_access import predict
from wherry.probe.model.parameters import Parameters
from wherry.probe.model.published import Range

START = Parameters(call_ns=30e3, c2h=13.0, h2c=13.0, soft_core=11.0, kernel_share=0.05, several_h2c=0.8)
"""The start of the fit. A test starts from other numbers and gets the same result."""
STEPS = 200


def fit(targets: Mapping[str, Range], start: Parameters = START) -> Parameters:
    """The parameters with which the model is closest to the middles of `targets`. Raises ValueError."""
    import numpy as np

    def residuals(at: Any) -> Any:
        # The fit varies logarithms, so that each parameter stays above zero.
        model = predict(Parameters(*np.exp(at).tolist()))
        return np.array([target.off_middle(model[name]) for name, target in targets.items()])

    found, gradient = _least_squares(residuals, np.log(np.array(astuple(start))))
    if not gradient < 1e-9:
        raise ValueError(f"the fit did not settle: a gradient of {gradient:.3g} is left after {STEPS} steps")
    return Parameters(*np.exp(found).tolist())


def _least_squares(residuals: Callable[[Any], Any], at: Any) -> tuple[Any, float]:
    """The point with the smallest sum of squares, and the length of the gradient there."""
    import numpy as np

    damping, now = 1e-3, residuals(at)
    slopes = _jacobian(residuals, at)
    for _ in range(STEPS):
        gradient = slopes.T @ now
        if np.linalg.norm(gradient) < 1e-13:
            break
        normal = slopes.T @ slopes
        there = at - np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-12), gradient)
        then = residuals(there)
        if then @ then <= now @ now:
            at, now, damping = there, then, max(damping / 10, 1e-15)
            slopes = _jacobian(residuals, at)
        else:
            damping *= 10
            if damping > 1e12:  # only rounding errors remain: no step improves the sum
                break
    return at, float(np.linalg.norm(slopes.T @ now))


def _jacobian(residuals: Callable[[Any], Any], at: Any) -> Any:
    """The Jacobian, by central differences."""
    import numpy as np

    width = 1e-6
    columns = []
    for index in range(len(at)):
        step = np.zeros(len(at))
        step[index] = width
        columns.append((residuals(at + step) - residuals(at - step)) / (2 * width))
    return np.stack(columns, axis=1)
