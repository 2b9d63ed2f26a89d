"""Draws ratios: bars on a logarithmic axis, a panel for each thread count and batch, a bar for each model."""

import math

BAR, LABEL, WIDTH, GAP = (
    14,
    150,
    170,
    20,
)  # height of a bar; widths of the models' names, a panel and the space between panels
HEAD, FOOT = 22, 24
FASTER, SLOWER = "#2b7a4b", "#b5482f"


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def text_at(x, y, text, **attributes):
    written = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:.1f}" y="{y:.1f}"{written}>{escaped(text)}</text>'


def panel(x, y, threads, batch, bars, reach):
    """Draws a panel. `bars` has a ratio, or None, for each model from top to bottom."""
    name, middle = f"{threads} thread{'s' * (threads > 1)}, batch {batch}", x + WIDTH / 2
    svg = [text_at(x, y + 14, name, font_weight="bold")]
    for i, ratio in enumerate(bars):
        if ratio is None:
            continue
        top, length = y + HEAD + i * BAR, math.log2(ratio) / reach * (WIDTH / 2 - 26)
        left, color = middle + min(length, 0), FASTER if ratio > 1 else SLOWER
        svg.append(
            f'<rect x="{left:.1f}" y="{top + 1}" width="{abs(length):.1f}" height="{BAR - 3}" fill="{color}"/>'
        )
        anchor = "start" if length >= 0 else "end"
        svg.append(text_at(middle + length + math.copysign(3, length), top + 10, f"{ratio:.2f}", text_anchor=anchor))
    bottom = y + HEAD + BAR * len(bars) + 2
    return svg + [f'<line x1="{middle}" y1="{y + HEAD - 2}" x2="{middle}" y2="{bottom}" stroke="black"/>']


def drawing(ratios):
    """Returns SVG of all panels. `ratios`: {(model, rows, threads, batch): ratio}."""
    sets = list(dict.fromkeys((model, rows) for model, rows, _, _ in ratios))
    threads, batches = sorted({key[2] for key in ratios}), sorted({key[3] for key in ratios})
    reach = max([1.0] + [abs(math.log2(ratio)) for ratio in ratios.values()])
    height = HEAD + BAR * len(sets) + FOOT
    w, h = LABEL + len(batches) * (WIDTH + GAP), 34 + len(threads) * height
    size = f'width="{w}" height="{h}" viewBox="0 0 {w} {h}"'
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">']
    svg += [f'<rect width="{w}" height="{h}" fill="white"/>']
    svg += [
        text_at(
            8, 18, "Speed against the fastest peer, log scale: right of the line forestvm is faster", font_size=13
        )
    ]
    for i, count in enumerate(threads):
        y = 34 + i * height
        for j, (model, rows) in enumerate(sets):
            name = model if rows == "rows" else f"{model} {rows}"
            svg.append(text_at(LABEL - 8, y + HEAD + j * BAR + 10, name, text_anchor="end"))
        for j, batch in enumerate(batches):
            bars = [ratios.get((model, rows, count, batch)) for model, rows in sets]
            svg += panel(LABEL + j * (WIDTH + GAP), y, count, batch, bars, reach)
    return "\n".join(svg + ["</svg>"]) + "\n"
