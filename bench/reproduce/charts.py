"""Drawings in SVG for the page of `forestvm`'s style: matrices, histograms and dots. Each has a title for readers that
speak. The classes are those of cli/html.cpp, whose colours follow the reader's light or dark setting."""

import math
import os
import sys
import textwrap
from dataclasses import dataclass

sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
from drawing import escaped, text_at  # noqa: E402

WIDTH, LABEL, ROW = 720, 150, 20
MOST = 64  # the largest ratio on an axis; larger ones are drawn there
COLORS = 5  # series of dots
DOT = 'style="stroke-width: 9px"'  # wider than the style sheet's dots, of which other pages have thousands


@dataclass(frozen=True)
class Chart:
    title: str
    height: float
    content: str

    def svg(self, y=None):
        """Returns the drawing for a page, or for a place in another drawing."""
        place = "" if y is None else f' y="{y:.0f}"'
        size = f'width="{WIDTH}" height="{self.height:.0f}" viewBox="0 0 {WIDTH} {self.height:.0f}"'
        title = f"<title>{escaped(self.title)}</title>"
        return f'<svg class="chart" role="img"{place} {size}>\n{title}\n{self.content}</svg>\n'


def svg_file(parts, style):
    """Returns an SVG file of (heading, chart), one below the other, each with the heading and its title."""
    y, svg = 10.0, []
    for heading, chart in parts:
        svg.append(text_at(10, y + 14, heading, font_weight="bold"))
        for line in textwrap.wrap(chart.title, 100):
            y += 17
            svg.append(text_at(10, y + 14, line, **{"class": "faint"}))
        svg.append(chart.svg(y + 26))
        y += chart.height + 50
    size = f'width="{WIDTH}" height="{y:.0f}" viewBox="0 0 {WIDTH} {y:.0f}"'
    body = "\n".join(svg)
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" {size}>\n<style>{style}</style>\n{body}</svg>\n'


class Axis:
    """A logarithmic axis of ratios."""

    def __init__(self, ratios, left=LABEL, right=WIDTH - 30):
        self.left, self.right = left, right
        reach = min(max(ratios, default=2), MOST)
        self.low = math.floor(min(0.0, math.log2(min(ratios, default=1))))
        self.high = max(1, math.ceil(math.log2(reach)), self.low + 1)

    def at(self, ratio):
        place = min(max(math.log2(ratio), self.low), self.high)
        return self.left + (self.right - self.left) * (place - self.low) / (self.high - self.low)

    def ticks(self, top, bottom):
        parts = (1, 1.25, 1.5, 1.75) if self.high - self.low == 1 else (1,)
        ratios = [part * 2.0**power for power in range(self.low, self.high) for part in parts] + [2.0**self.high]
        svg = ""
        for ratio in ratios:
            x, text = self.at(ratio), f"{'≥ ' if ratio == MOST else ''}{ratio:g}x"
            svg += f'<path class="axis" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'
            svg += text_at(x, bottom + 14, text, text_anchor="middle", **{"class": "faint"}) + "\n"
        return svg


def matrix(title, columns, rows, cells, across, down):
    """Draws numbers in a table whose cells are the darker, the larger their number. A cell that is None is
    empty."""
    width = min(70.0, (WIDTH - LABEL) / len(columns))
    most = max([2.0] + [cell for line in cells for cell in line if cell is not None])
    svg = text_at(LABEL, 12, across, **{"class": "faint"}) + text_at(0, 44, down, **{"class": "faint"})
    for i, column in enumerate(columns):
        svg += text_at(LABEL + width * (i + 0.5), 30, column[:10], text_anchor="middle")
    for j, (row, line) in enumerate(zip(rows, cells)):
        y = 50 + ROW * j
        svg += text_at(LABEL - 8, y + 14, row, text_anchor="end")
        for i, cell in enumerate(line):
            x = LABEL + width * i
            if cell is not None:
                shade = 0.5 * min(1.0, max(0.0, math.log(cell) / math.log(most)))
                svg += f'<rect class="mark" stroke-opacity="0" fill-opacity="{shade:.2f}" x="{x + 1:.1f}" y="{y}" '
                svg += f'width="{width - 2:.1f}" height="{ROW - 2}"/>'
            text = "-" if cell is None else f"{cell:.1f}" if cell >= 9.95 else f"{cell:.2f}"
            svg += text_at(x + width / 2, y + 14, text, text_anchor="middle") + "\n"
    return Chart(title, 58 + ROW * len(rows), svg)


def histograms(title, series):
    """Draws the distribution of ratios, a line for each of {name: ratios}."""
    bins, height, top = 48, 46, 10.0
    axis = Axis([ratio for ratios in series.values() for ratio in ratios])
    bottom = top + height * len(series)
    svg, width = axis.ticks(top, bottom), (axis.right - axis.left) / bins
    for j, (name, ratios) in enumerate(series.items()):
        base = top + height * (j + 1)
        counts = [0] * bins
        for ratio in ratios:
            counts[min(bins - 1, int((axis.at(ratio) - axis.left) / width))] += 1
        svg += text_at(LABEL - 8, base - 14, name, text_anchor="end")
        svg += text_at(LABEL - 8, base - 2, f"{len(ratios)} schedules", text_anchor="end", **{"class": "faint"})
        for i, count in enumerate(counts):
            tall = (height - 8) * count / max(counts)
            if count:
                svg += f'<rect class="mark" x="{axis.left + width * i + 1:.1f}" y="{base - tall:.1f}" '
                svg += f'width="{width - 2:.1f}" height="{tall:.1f}"><title>{count} schedules</title></rect>\n'
        svg += f'<path class="axis" d="M{axis.left:.1f} {base:.1f}H{axis.right:.1f}"/>\n'
    return Chart(title, bottom + 24, svg)


def dots(title, rows, series):
    """Draws ratios as dots: a line for each of the rows, a colour for each of {name: ratios, or None, by row}."""
    found = [ratio for ratios in series.values() for ratio in ratios if ratio is not None]
    axis, top = Axis(found), 26.0
    bottom = top + ROW * len(rows)
    svg = axis.ticks(top, bottom)
    for i, (name, ratios) in enumerate(series.items()):
        color, x = f"dots c{i % COLORS}", LABEL + 110 * i
        svg += f'<path class="{color}" {DOT} d="M{x:.1f} 8h0"/>' + text_at(x + 10, 12, name) + "\n"
        for j, ratio in enumerate(ratios):
            if ratio is not None:
                y = top + ROW * (j + 0.5)
                svg += f'<path class="{color}" {DOT} d="M{axis.at(ratio):.1f} {y:.1f}h0"><title>{escaped(name)}: '
                svg += f"{ratio:.2f}x</title></path>\n"
    for j, row in enumerate(rows):
        svg += text_at(LABEL - 8, top + ROW * j + 14, row, text_anchor="end")
    one = axis.at(1)
    svg += f'<path class="strong" d="M{one:.1f} {top:.1f}V{bottom:.1f}"/>\n'
    return Chart(title, bottom + 24, svg)
