# SPDX-License-Identifier: Apache-2.0
"""The analytic model of host-card paths, and its comparison with published values (docs/design/probe-model.md)."""

from wherry import lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wherry.probe.model.driver import Driver as Driver
    from wherry.probe.model.fitting import fit as fit
    from wherry.probe.model.heldout import HeldOut as HeldOut
    from wherry.probe.model.link import Link as Link
    from wherry.probe.model.memory_access import designs as designs
    from wherry.probe.model.memory_access import fitted_to as fitted_to
    from wherry.probe.model.parameters import Parameters as Parameters
    from wherry.probe.model.parameters import constants as constants
    from wherry.probe.model.parameters import stored as stored
    from wherry.probe.model.records import document as document
    from wherry.probe.model.rows import Row as Row
    from wherry.probe.model.rows import bars as bars
    from wherry.probe.model.rows import basis as basis
    from wherry.probe.model.rows import beside as beside
    from wherry.probe.model.rows import claims as claims
    from wherry.probe.model.rows import everything as everything

if not TYPE_CHECKING:  # hides __getattr__ from type checkers, so that they report unknown names
    __getattr__ = lazy.names(
        __name__,
        {
            "wherry.probe.model.records": ("document",),
            "wherry.probe.model.driver": ("Driver",),
            "wherry.probe.model.fitting": ("fit",),
            "wherry.probe.model.heldout": ("HeldOut",),
            "wherry.probe.model.link": ("Link",),
            "wherry.probe.model.memory_access": ("designs", "fitted_to"),
            "wherry.probe.model.parameters": ("Parameters", "constants", "stored"),
            "wherry.probe.model.rows": ("Row", "bars", "basis", "beside", "claims", "everything"),
        },
    )
