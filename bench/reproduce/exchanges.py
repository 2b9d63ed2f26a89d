"""Schedules used where they are not the best: for other numbers of rows, and for other models."""

from statistics import geometric_mean

from charts import matrix
from experiment import Experiment, ratio, share, verdict
from page import Section, Table
from searches import best_name, best_steps, cut_short
from steps import Step


def bests(forest, batches, results):
    """Returns {rows: the best schedule} for the numbers of rows for which there is one."""
    known = {batch: results.get(best_name(forest, batch)) for batch in batches}
    return {str(batch): best["schedule"] for batch, best in known.items() if best}


# Schedules of one number of rows, used for another


def batches_steps(setup):
    steps = []
    for forest in setup.forests:
        steps += best_steps(setup, forest, setup.batches)

        def measure(results, forest=forest):
            schedules = {**bests(forest, setup.batches, results), "auto": "auto"}
            times = setup.forestvm.times
            return {str(batch): times(forest.model, forest.rows, batch, schedules) for batch in setup.batches}

        steps.append(Step(f"batches/{forest.name}", 12, measure))
    return steps


def exchanged(cells):
    """Returns (rows, columns, slowdown) of {row: {column: time}}: the time with the column's schedule divided by the
    time with the row's own. A refused schedule has no time."""
    return [
        (row, column, time / times[row])
        for row, times in cells.items()
        if row in times
        for column, time in times.items()
    ]


def batches_section(setup, results):
    section = Section(
        "batches",
        "Best schedules, used for other numbers of rows",
        "Figure 2a and section 2.1: the best schedule for a smaller number of rows is 2x slower for a larger one, "
        "and vice versa; over all models, the largest slowdown is 5x.",
    )
    names = [str(batch) for batch in setup.batches]
    rows, slower, automatic = [], [], []
    for forest in setup.forests:
        cells = results.get(f"batches/{forest.name}")
        if cells is None:
            continue
        all_of = {(row, column): value for row, column, value in exchanged(cells)}
        up = [v for (row, column), v in all_of.items() if column != "auto" and int(column) < int(row)]
        down = [v for (row, column), v in all_of.items() if column != "auto" and int(column) > int(row)]
        own = [v for (_, column), v in all_of.items() if column == "auto"]
        slower += up + down
        automatic += own
        rows.append([forest.name, *(ratio(max(part, default=None)) for part in (up, down, own))])
        if not section.charts:
            grid = [[all_of.get((row, column)) for column in [*names, "auto"]] for row in names]
            section.charts.append(
                matrix(
                    f"{forest.name}: slowdown with the best schedule for another number of rows",
                    [*names, "auto"],
                    names,
                    grid,
                    "schedule for rows",
                    "rows of a call",
                )
            )
    section.tables.append(
        Table("Largest slowdowns", ["model", "schedule for fewer rows", "schedule for more rows", "auto"], rows)
    )
    if slower:
        many = sum(value >= 2 for value in slower)
        section.found.append(
            verdict(
                max(slower) >= 2,
                f"the largest slowdown is {ratio(max(slower))}, {'more' if max(slower) > 5 else 'not more'} than "
                f"the paper's, the geometric mean {ratio(geometric_mean(slower))}; {share(many, len(slower))} of "
                f"the {len(slower)} exchanges cost 2x or more. The host's space spans more than the paper's "
                "schedules: scalar walks, vectors of rows or of trees, tables.",
            )
        )
        section.found.append(
            "The schedule auto, which has a plan for each range of rows and is chosen without measuring, takes at "
            f"most {ratio(max(automatic))} of the best schedule's time, {ratio(geometric_mean(automatic))} in the "
            "geometric mean."
        )
        section.found += cut_short(setup.forests, setup.batches, results)
    return section


# Schedules of one model, used for another


def models_steps(setup):
    steps = []
    for forest in setup.forests:
        steps += best_steps(setup, forest, [setup.models_batch])
    for forest in setup.forests:

        def measure(results, forest=forest):
            known = {other.name: results.get(best_name(other, setup.models_batch)) for other in setup.forests}
            schedules = {name: best["schedule"] for name, best in known.items() if best}
            return setup.forestvm.times(forest.model, forest.rows, setup.models_batch, schedules)

        steps.append(Step(f"models/{forest.name}", 6, measure))
    return steps


def models_section(setup, results):
    section = Section(
        "models",
        "Best schedules, used for other models",
        "Figure 2b and section 2.1, calls of 4,096 rows: the slowdown is much worse across models; in about 20% "
        "of the cases, the best schedule for one model makes another 5x slower.",
    )
    times = {forest.name: results.get(f"models/{forest.name}") for forest in setup.forests}
    times = {name: cells for name, cells in times.items() if cells and name in cells}
    if not times:
        return section
    slowdowns = {(row, column): value for row, column, value in exchanged(times)}
    names = list(times)
    grid = [[slowdowns.get((row, column)) for column in names] for row in names]
    section.charts.append(
        matrix(
            f"Slowdown with another model's best schedule, calls of {setup.models_batch} rows",
            names,
            names,
            grid,
            "best schedule of",
            "model",
        )
    )
    other = [value for (row, column), value in slowdowns.items() if row != column]
    refused = len(names) * (len(names) - 1) - len(other)
    found = [results[best_name(forest, setup.models_batch)] for forest in setup.forests if forest.name in times]
    texts = [best["schedule"] for best in found]
    tables = sum("ables)" in text for text in texts)
    unfit = f" {refused} more exchanges are refused, because trees do not fit the layout." if refused else ""
    if other:
        many = sum(value >= 5 for value in other)
        section.found.append(
            verdict(
                many / len(other) >= 0.1,
                f"{share(many, len(other))} of the {len(other)} exchanges cost 5x or more; the largest slowdown is "
                f"{ratio(max(other))}, the geometric mean {ratio(geometric_mean(other))}. The {len(found)} models "
                f"have {len(set(texts))} different best schedules, and those of {tables} models walk tables of "
                f"codes.{unfit}",
            )
        )
        section.found += cut_short(setup.forests, [setup.models_batch], results)
    section.tables.append(
        Table(
            "Slowdowns by model (line) and schedule (column)",
            ["model", *names],
            [[row, *map(ratio, line)] for row, line in zip(names, grid)],
        )
    )
    return section


EXPERIMENTS = (
    Experiment(
        "batches",
        "best schedules, used for other numbers of rows (figure 2a)",
        batches_steps,
        batches_section,
    ),
    Experiment("models", "best schedules, used for other models (figure 2b)", models_steps, models_section),
)
