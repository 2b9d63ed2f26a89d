#!/usr/bin/env python3
"""Makes the tables of the GPU benchmarks: report.py OUT CASE reads OUT/CASE.jsonl and writes CASE.md and, for some
cases, CASE.svg. `run` calls it at the end. A figure is microseconds per call with rows on the GPU. A ratio is
nvForest's time divided by forestvm's, so that forestvm is faster above 1; times are those of the kernels unless a table
says otherwise."""

import json, math, os, sys
from statistics import geometric_mean

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))
from drawing import text_at  # noqa: E402

WRONG = 1e-5  # the difference from which scores are wrong, relative to the largest; the order of sums changes less
PANEL_WIDTH, PANEL_HEIGHT, MARGIN = 300, 200, 60
LARGE, SMALL = 4096, 512  # the report has the mean ratio from LARGE rows on, and up to SMALL rows
COLORS = ("#2b7a4b", "#b5482f")


def read(folder, case):
    with open(f"{folder}/{case}.jsonl") as file:
        return [json.loads(line) for line in file]


def table(head, body):
    return "\n".join(["| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *body]]) + "\n"


def is_wrong(result):
    return result["max_difference"] > WRONG * max(1, result["largest"])


def number(value):
    return "-" if value is None else f"{value:.4g}"


def errors(lines):
    said = [f"- {line.get('model', '')}: {line['error']}" for line in lines if "error" in line]
    said += [f"- {line['model']}, {line['left_out']}: {line['reason']}" for line in lines if "left_out" in line]
    return "\nLeft out:\n\n" + "\n".join(said) + "\n" if said else ""


def b0(lines):
    text = ""
    for name, value in lines[0].items():
        if isinstance(value, dict):
            text += f"\n{name}\n\n" + table(value.keys(), [value.values()])
        else:
            text += f"- {name}: {value}\n"
    return text


def b1(lines):
    failed = [line for line in lines if line["difference"]]
    where = "host, emulator and GPU" if all(line["on_gpu"] for line in lines) else "host and emulator, no GPU"
    text = f"{len(lines) - len(failed)} of {len(lines)} checks agree ({where}).\n"
    body = [[line["model"], line["schedule"], line["output"], line["difference"]] for line in failed]
    return text + ("\n" + table(["model", "schedule", "output", "difference"], body) if body else "")


def b2(lines):
    """Makes the table of the interpreter's cost: the difference from the kernel without an interpreter. A cost of 3 %
    from 100,000 rows on, and of 1 us for one row, is accepted."""
    timed = {(line["model"], line["batch"], line["engine"]): line for line in lines if "batch" in line}
    body = []
    for (model, batch, engine), ours in timed.items():
        theirs = timed.get((model, batch, "straight"))
        if engine != "forestvm" or theirs is None:
            continue
        more = ours["event_us"] - theirs["stream_us"]
        accepted = more <= 1 if batch == 1 else more <= 0.03 * theirs["stream_us"] if batch >= 100_000 else None
        verdict = "" if accepted is None else "yes" if accepted else "no"
        body.append(
            [model, batch, number(ours["event_us"]), number(theirs["stream_us"]), f"{more:.3f}"]
            + [f"{100 * more / theirs['stream_us']:.1f} %", verdict]
        )
    head = ["model", "rows", "forestvm us", "straight us", "more us", "more", "accepted"]
    return table(head, body) + errors(lines)


def cells_of(lines):
    """Returns (model, batch) -> engines, for cells in which all engines' answers are right."""
    cells = {(line["model"], line["batch"]): line["engines"] for line in lines if "engines" in line}
    return {key: engines for key, engines in cells.items() if not any(map(is_wrong, engines.values()))}


def ratio(engines, figure="kernel_us"):
    """Returns nvForest's time divided by forestvm's; None if one of them is absent."""
    theirs, ours = engines.get("nvforest", {}).get(figure), engines["forestvm"][figure]
    return theirs / ours if theirs is not None and ours is not None else None


def ratios(cells):
    found = {key: ratio(engines) for key, engines in cells.items()}
    return {key: value for key, value in found.items() if value is not None}


def times(value):
    return "-" if value is None else f"{value:.2f}x"


def mean_line(title, found, wanted):
    if not found:
        return f"- {title}: no cells\n"
    (model, batch), least = min(found.items(), key=lambda item: item[1])
    mean = geometric_mean(found.values())
    verdict = "" if wanted is None else f" (wanted {wanted}x: {'yes' if mean >= wanted else 'no'})"
    return f"- {title}: **{mean:.2f}x**{verdict}, least {least:.2f}x ({model}, {batch} rows), {len(found)} cells\n"


def b3(lines):
    cells = cells_of(lines)
    found = ratios(cells)
    text = mean_line("all cells", found, None)
    text += mean_line(f"from {LARGE} rows on", {key: r for key, r in found.items() if key[1] >= LARGE}, 2)
    text += mean_line(f"up to {SMALL} rows", {key: r for key, r in found.items() if key[1] <= SMALL}, 2)
    body = []
    for (model, batch), engines in cells.items():
        ours, theirs = engines["forestvm"], engines.get("nvforest", {})
        body.append(
            [model, batch, number(ours["kernel_us"]), number(theirs.get("kernel_us")), f"**{times(ratio(engines))}**"]
            + [number(ours["call_us"]), number(theirs.get("call_us")), times(ratio(engines, "call_us"))]
            + [ours["schedule"], f"{theirs['layout']}, chunk {theirs['chunk']}" if theirs else "-"]
            + [f"{ours['equal_bits']} of {ours['checked']}"]
        )
    head = ["model", "rows", "forestvm's kernels us", "nvForest's us", "ratio", "its calls us", "nvForest's us"]
    text += "\n" + table([*head, "ratio of calls", "schedule", "its layout", "trainer's bits"], body)
    wrong = [
        [line["model"], line["batch"], name, number(result["max_difference"])]
        for line in lines
        if "engines" in line
        for name, result in line["engines"].items()
        if is_wrong(result)
    ]
    if wrong:
        text += "\nWrong answers, not compared:\n\n" + table(["model", "rows", "engine", "off by"], wrong)
    return text + errors(lines)


def b4(lines):
    bounds = {(line["model"], line["label"]): line["bounds"] for line in lines if "bounds" in line}
    body = []
    for line in lines:
        if "call_us" not in line:
            continue
        numbers = [value for part, value in bounds.get((line["model"], line["label"]), {}).items() if part != "bus"]
        numbers = [value for value in numbers if not isinstance(value, str)]
        rate = line["batch"] / line["event_us"]
        of_bound = f"{100 * rate / min(numbers):.0f} %" if numbers else "-"
        wrong = "wrong answers" if is_wrong(line) else ""
        body.append(
            [line["model"], line["batch"], line["label"], number(line["event_us"]), number(rate), of_bound, wrong]
        )
    head = ["model", "rows", "schedule", "us", "million rows/s", "of the bound for 65536 rows on an H100", ""]
    return table(head, body) + errors(lines)


def b5(lines):
    searches = {}
    for line in lines:
        if "point" in line:
            searches.setdefault((line["model"], line["batch"], line["points"]), []).append(line)
    body = []
    for (model, batch, points), tried in searches.items():
        timed = [line for line in tried if "call_us" in line]
        tried, timed = (searched(tried), searched(timed)) if points == "39" else (tried, timed)
        if not timed:
            continue
        best = min(timed, key=lambda line: line["call_us"])
        seconds = sum(line["compile_s"] + line["search_s"] for line in tried)
        body.append([model, batch, points, len(tried), f"{seconds:.2f}", number(best["call_us"]), best["point"]])
    return table(["model", "rows", "points", "tried", "seconds", "us", "best point"], body) + errors(lines)


def searched(lines):
    """Returns the points that algorithm 1 measures: every point without shared reduction, and the three fastest of them
    with it."""
    plain = [line for line in lines if "shared0" in line["point"]]
    fastest = sorted((line for line in plain if "call_us" in line), key=lambda line: line["call_us"])[:3]
    again = {line["point"].replace("shared0", "shared1") for line in fastest}
    return plain + [line for line in lines if line["point"] in again]


def b6(lines):
    body = [
        [line["model"], line["batch"], line["label"], number(line["call_us"]), number(line["batch"] / line["call_us"])]
        + [number(line["bytes"] / line["call_us"] / 1e3)]
        for line in lines
        if "call_us" in line
    ]
    return table(["model", "rows", "memory", "us", "million rows/s", "GB/s of rows"], body) + errors(lines)


def scale(values, start, length):
    low, high = math.log(min(values)), math.log(max(values))
    return lambda value: start + (math.log(value) - low) / max(high - low, 1e-9) * length


def drawing(cells):
    """Draws b3: rows per second of kernels against rows per call, a panel for each model, both axes logarithmic."""
    names = list(dict.fromkeys(model for model, _ in cells))
    columns = min(4, max(1, len(names)))
    lines = (len(names) + columns - 1) // columns
    width, height = columns * (PANEL_WIDTH + MARGIN) + MARGIN, lines * (PANEL_HEIGHT + MARGIN) + MARGIN
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="10">']
    svg.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    svg.append(text_at(MARGIN, 20, "Rows a second of kernels against rows a call, rows on the GPU", font_size=13))
    for j, name in enumerate(("forestvm", "nvForest")):
        svg.append(text_at(MARGIN + 360 + 80 * j, 20, name, fill=COLORS[j], font_size=13))
    for i, model in enumerate(names):
        left, top = MARGIN + i % columns * (PANEL_WIDTH + MARGIN), MARGIN + i // columns * (PANEL_HEIGHT + MARGIN)
        mine = {batch: engines for (of, batch), engines in cells.items() if of == model}
        rates = {
            engine: [(batch, 1e6 * batch / engines[engine]["kernel_us"]) for batch, engines in sorted(mine.items())]
            for engine in ("forestvm", "nvforest")
        }
        x = scale(list(mine), left, PANEL_WIDTH)
        reached = [rate for points in rates.values() for _, rate in points]
        y = scale(reached, top + PANEL_HEIGHT, -PANEL_HEIGHT)
        svg.append(text_at(left, top - 6, model, font_weight="bold"))
        svg.append(
            f'<rect x="{left}" y="{top}" width="{PANEL_WIDTH}" height="{PANEL_HEIGHT}" fill="none" stroke="gray"/>'
        )
        for value in (min(reached), max(reached)):
            svg.append(text_at(left - 4, y(value) + 3, f"{value:.2g}", text_anchor="end"))
        for batch in mine:
            svg.append(text_at(x(batch), top + PANEL_HEIGHT + 12, str(batch), text_anchor="middle", font_size=7))
        for color, points in zip(COLORS, rates.values()):
            path = " ".join(f"{x(batch):.1f},{y(rate):.1f}" for batch, rate in points)
            svg.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
    return "\n".join(svg + ["</svg>"]) + "\n"


def write(folder, case):
    lines = read(folder, case)
    if not lines:
        return f"{case}: nothing was measured"
    text = globals()[case](lines)
    with open(f"{folder}/{case}.md", "w") as file:
        file.write(f"# {case}\n\n{text}")
    drawn = {key: engines for key, engines in cells_of(lines).items() if ratio(engines)} if case == "b3" else {}
    if drawn:
        with open(f"{folder}/{case}.svg", "w") as file:
            file.write(drawing(drawn))
    return f"\n{text}\nIn {folder}: {case}.jsonl, {case}.md"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("report.py OUT CASE")
    print(write(sys.argv[1], sys.argv[2]))
