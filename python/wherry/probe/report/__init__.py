# SPDX-License-Identifier: Apache-2.0
"""The report's chapters of probe."""

from wherry.probe.report.model import chapter as model_chapter

CHAPTERS = {"probe_model": model_chapter}
