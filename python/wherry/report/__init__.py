# SPDX-License-Identifier: Apache-2.0
"""`wherry report`, and the building blocks of the services' chapters: sections and the style of plots."""

from wherry.report.chapter import BarLine as BarLine
from wherry.report.chapter import Chapter as Chapter
from wherry.report.chapter import Section as Section
from wherry.report.chapter import Sections as Sections
from wherry.report.chapter import Totals as Totals
from wherry.report.chapter import bench_chapter as bench_chapter
from wherry.report.chapter import cores_text as cores_text
from wherry.report.chapter import machine_text as machine_text
from wherry.report.chapter import versions_text as versions_text
from wherry.report.page import build as build
from wherry.report.page import write as write
from wherry.report.plots import COLOURS as COLOURS
from wherry.report.plots import INK as INK
from wherry.report.plots import PUBLISHED as PUBLISHED
from wherry.report.plots import Published as Published
from wherry.report.plots import grouped_bars as grouped_bars
from wherry.report.plots import legend_above as legend_above
from wherry.report.plots import panels as panels
from wherry.report.plots import plain_axis as plain_axis
from wherry.report.plots import reference_line as reference_line
from wherry.report.plots import size_axis as size_axis
from wherry.report.plots import stacked_bars as stacked_bars
from wherry.report.plots import styled as styled
