#!/usr/bin/env python3
"""Makes the tables of a comparison: report.py RESULTS_FOLDER reads cells.jsonl there, prints the tables and writes
report.md, results.json and speed.svg beside it. `run` calls it at the end.

report.py RESULTS_FOLDER ENGINE=FILE.csv ... adds tables of engines that cannot run beside the others, from their ratios
to XGBoost, measured elsewhere: columns model, threads, batch, ratio_to_xgboost (XGBoost's time over theirs).

A figure is the smallest of the rounds' medians, in microseconds per row. With one thread it is the smaller of wall
clock and process CPU clock (which leaves out other programs); with more threads it is the wall clock. Engines whose
answers are wrong are left out of the comparison, and so is CatBoost with trees of its own, for which there are no
answers to check. A ratio is the fastest peer's figure divided by forestvm's: above 1 forestvm is faster."""

import csv, json, os, sys
from collections import defaultdict
from statistics import geometric_mean

from drawing import drawing

WRONG = 1e-3  # difference from which answers are wrong, relative to the largest answer (or to 1 if that is less)


def read(folder):
    with open(f"{folder}/cells.jsonl") as file:
        return [json.loads(line) for line in file]


def figure(result, threads):
    wall = min(turn["wall_median"] for turn in result["turns"])
    return min([wall] + [turn["cpu_median"] for turn in result["turns"]]) if threads == 1 else wall


def is_wrong(result):
    return result.get("max_difference", 0) > WRONG * max(1, result.get("largest", 0))


def takes_part(record):
    return "checked" in record and not record["wrong"]


def lines(cells):
    """Yields one record for each cell and engine that was timed."""
    out = []
    for cell in cells:
        key = {name: cell[name] for name in ("model", "rows", "threads", "batch")}
        for engine, result in cell["engines"].items():
            if "turns" not in result:
                continue
            facts = {
                name: result[name]
                for name in ("version", "checked", "equal_bits", "max_difference")
                if name in result
            }
            out.append(
                dict(key, engine=engine, us_per_row=figure(result, cell["threads"]), wrong=is_wrong(result), **facts)
            )
    return out


def compared(records):
    """Returns (model, rows, threads, batch) -> {engine: us per row} for the engines that take part."""
    cells = defaultdict(dict)
    for r in records:
        if takes_part(r):
            cells[r["model"], r["rows"], r["threads"], r["batch"]][r["engine"]] = r["us_per_row"]
    return cells


def ratios(cells):
    """Returns {key of a cell: (ratio, fastest peer)} for the cells in which forestvm and a peer were timed."""
    out = {}
    for key, figures in cells.items():
        peers = {engine: us for engine, us in figures.items() if engine != "forestvm"}
        if "forestvm" not in figures or not peers:
            continue
        fastest = min(peers, key=peers.get)
        out[key] = (peers[fastest] / figures["forestvm"], fastest)
    return out


def threads_text(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def title(model, rows):
    return model if rows == "rows" else f"{model} {rows}"


def table(head, body):
    return "\n".join(["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *body]]) + "\n"


def cell_text(figures, ratio):
    if not figures:
        return "-"
    if ratio is None:  # forestvm or all peers are missing
        engine = min(figures, key=figures.get)
        return f"{engine} {figures[engine]:.3g}"
    return f"{figures['forestvm']:.3g}, **{ratio[0]:.2f}x** {ratio[1]} {figures[ratio[1]]:.3g}"


def mean_text(values):
    if not values:
        return "-"
    faster = sum(value > 1 for value in values)
    return f"**{geometric_mean(values):.2f}x**, least {min(values):.2f}x, {faster} of {len(values)} faster"


def ratio_tables(records):
    figures, by_cell = compared(records), ratios(compared(records))
    batches = sorted({batch for _, _, _, batch in figures})
    sets = list(dict.fromkeys((model, rows) for model, rows, _, _ in figures))
    text = "A ratio is the fastest peer's time over forestvm's: above 1 forestvm is faster.\n\n"
    for threads in sorted({threads for _, _, threads, _ in figures}):
        text += f"## {threads_text(threads)}: us/row of forestvm, ratio, fastest peer and its us/row\n\n"
        body = []
        for model, rows in sets:
            keys = [(model, rows, threads, batch) for batch in batches]
            body.append([title(model, rows)] + [cell_text(figures.get(key), by_cell.get(key)) for key in keys])
        means = ["geometric mean"]
        for batch in batches:
            means.append(
                mean_text([ratio for (_, _, t, b), (ratio, _) in by_cell.items() if (t, b) == (threads, batch)])
            )
        text += table(["model"] + [f"batch {batch}" for batch in batches], [*body, means]) + "\n"
    return text + f"All cells: {mean_text([ratio for ratio, _ in by_cell.values()])}.\n\n"


def answers(records):
    text = "## Answers\n\n"
    if mine := [r for r in records if r["engine"] == "forestvm"]:
        equal, checked = sum(r["equal_bits"] for r in mine), sum(r["checked"] for r in mine)
        text += f"forestvm: {equal} of {checked} raw scores have the trainer's bits.\n\n"
    wrong = {(r["engine"], title(r["model"], r["rows"])): r["max_difference"] for r in records if r["wrong"]}
    if wrong:
        body = [[*names, f"{difference:.3g}"] for names, difference in sorted(wrong.items())]
        text += "Left out as wrong:\n\n" + table(["engine", "model", "largest difference"], body) + "\n"
    return text


def engine_text(r):
    if r is None:
        return "-"
    return f"{r['us_per_row']:.3g}" if takes_part(r) else f"({r['us_per_row']:.3g})"


def every_engine(records):
    engines = list(dict.fromkeys(r["engine"] for r in records))
    cells = defaultdict(dict)
    for r in records:
        cells[title(r["model"], r["rows"]), r["threads"], r["batch"]][r["engine"]] = r
    body = [[*map(str, key)] + [engine_text(found.get(engine)) for engine in engines] for key, found in cells.items()]
    head = "## Every engine, us/row (in brackets: not compared)\n\n"
    return head + table(["model", "threads", "batch", *engines], body)


def through_xgboost(engine, path, records):
    """Compares forestvm with an engine whose ratio to XGBoost is known."""
    with open(path) as file:
        known = {
            (row["model"], "rows", int(row["threads"]), int(row["batch"])): float(row["ratio_to_xgboost"])
            for row in csv.DictReader(file)
        }
    cells = compared(records)
    found = {
        key: cells[key]["xgboost"] / ratio / cells[key]["forestvm"]
        for key, ratio in known.items()
        if {"xgboost", "forestvm"} <= cells.get(key, {}).keys()
    }
    columns = sorted({key[2:] for key in found})
    body = [
        [model] + [f"{found[key]:.2f}" if (key := (model, "rows", *column)) in found else "-" for column in columns]
        for model in dict.fromkeys(key[0] for key in found)
    ]
    means = [
        f"**{geometric_mean([ratio for key, ratio in found.items() if key[2:] == column]):.2f}**" for column in columns
    ]
    head = ["model", *[f"{threads_text(threads)}, batch {batch}" for threads, batch in columns]]
    return (
        f"## {engine}, through its ratio to XGBoost elsewhere: its time over forestvm's\n\n"
        + table(head, [*body, ["geometric mean", *means]])
        + "\n"
    )


def report(folder, elsewhere=()):
    cells = read(folder)
    records = lines(cells)
    text, by_cell = ratio_tables(records) + answers(records), ratios(compared(records))
    for engine, path in elsewhere:
        text += through_xgboost(engine, path, records)
    text += every_engine(records)
    keys = ("model", "rows", "threads", "batch")
    found = [dict(zip(keys, key), ratio=ratio, fastest_peer=peer) for key, (ratio, peer) in by_cell.items()]
    with open(f"{folder}/report.md", "w") as file:
        file.write(text)
    with open(f"{folder}/results.json", "w") as file:
        json.dump(dict(figures=records, ratios=found), file, indent=1)
    with open(f"{folder}/speed.svg", "w") as file:
        file.write(drawing({key: ratio for key, (ratio, _) in by_cell.items()}))
    return text


if __name__ == "__main__":
    engines = [argument.split("=", 1) for argument in sys.argv[2:]]
    if len(sys.argv) < 2 or not os.path.exists(f"{sys.argv[1]}/cells.jsonl") or any(len(e) != 2 for e in engines):
        sys.exit(__doc__)
    print(report(sys.argv[1], engines))
