"""Loops in parallel, and fixed loops against searched ones: trees in parallel for few rows, and random models."""

from statistics import geometric_mean

from charts import dots, matrix
from experiment import Experiment, ratio, verdict, without_none
from page import Section, Table
from searches import found
from steps import Step

# Trees in parallel


LOCKSTEP = (1, 2, 4, 8, 16)


def parallel_schedules(batch, threads):
    """Returns the schedules that SilvanForge tries on CPUs, {loops in parallel: {label: schedule}}. The named ones with
    rows in parallel have blocks of 64 rows, so that there are also some with a block for each thread."""
    block, named = max(1, -(-batch // threads)), {}
    for loops in ("rows", "trees", "rows-trees"):
        labels = [loops if walks == 1 else f"{loops}-{walks}" for walks in LOCKSTEP]
        named[loops] = {label: label for label in labels}
    for walks in LOCKSTEP:
        text = f"tile(batch, b0, b1, {block}); reorder(b0, tree, b1); parallel(b0)"
        if walks > 1:
            text += f"; tile(b1, b2, b3, {walks}); interleave(b3)"
        named["rows"][f"rows-of-threads-{walks}"] = text
    return named


def trees_steps(setup):
    def times(forest, batch):
        schedules = parallel_schedules(batch, setup.tree_threads)
        every = {label: text for group in schedules.values() for label, text in group.items()}
        cells = setup.forestvm.times(forest.model, forest.rows, batch, every, setup.tree_threads, "fast")
        best = {loops: [cells[label] for label in group if label in cells] for loops, group in schedules.items()}
        return {loops: min(found) for loops, found in best.items() if found}

    def measure(forest):
        return lambda _: {str(batch): times(forest, batch) for batch in setup.tree_batches}

    return [Step(f"trees/{forest.name}", 50, measure(forest)) for forest in setup.searchable()]


def trees_section(setup, results):
    threads = f"{setup.tree_threads} threads"
    section = Section(
        "trees",
        "Trees in parallel for few rows",
        "Section 9.4, 16 virtual cores: for calls of 32 rows, the best schedule with trees in parallel is 2.2x as "
        "fast as the best one with rows in parallel, in the geometric mean over 8 models, 5x at most, and faster "
        "for all models; for 64 rows 1.1x, 2x at most, and for 2 of the 8 models rows in parallel are faster.",
    )
    gains = {batch: [] for batch in setup.tree_batches}
    names = []
    for forest in setup.searchable():
        cells = results.get(f"trees/{forest.name}")
        if cells is None:
            continue
        names.append(forest.name)
        for batch in setup.tree_batches:
            times = cells[str(batch)]
            gains[batch].append(times["rows"] / times["trees"] if "rows" in times and "trees" in times else None)
    if names:
        shown = [batch for batch in setup.tree_batches if batch in (1, 16, 32, 64, 256)]
        section.charts.append(
            dots(
                f"Time with rows in parallel divided by the time with trees in parallel, {threads}",
                names,
                {f"{batch} {'row' if batch == 1 else 'rows'}": gains[batch] for batch in shown},
            )
        )
        means = {batch: geometric_mean(without_none(column)) for batch, column in gains.items() if any(column)}
        said = ", ".join(f"{ratio(mean)} at {batch}" for batch, mean in means.items())
        few = means.get(32, 1.0)
        section.found.append(
            verdict(
                few > 1.05,
                f"with {threads}, trees in parallel are this many times as fast as rows in parallel, by rows per "
                f"call: {said}. Either is the fastest of its schedules; those with rows in parallel have blocks of "
                "64 rows or a block for each thread. None of them encodes rows or has tables, as forestvm's own "
                "schedules do.",
            )
        )
    head = ["model, rows per call", *map(str, setup.tree_batches)]
    rows = [[name, *(ratio(gains[batch][i]) for batch in setup.tree_batches)] for i, name in enumerate(names)]
    section.tables.append(
        Table("Time with rows in parallel divided by the time with trees in parallel", head, rows)
    )
    return section


# Random models


def random_name(size):
    return "random/t{}-f{}-d{}".format(*size)


def random_steps(setup):
    def measure(size):
        def times(_):
            forest, cells = setup.drawn(*size), {}
            for batch in setup.random_batches:
                report = setup.forestvm.search(forest.model, forest.rows, batch, "heuristic", setup.search_seconds)
                schedules = dict(found=found(report)["schedule"], auto="auto", xgboost="xgboost")
                cells[str(batch)] = setup.forestvm.times(forest.model, forest.rows, batch, schedules)
            return cells

        return times

    return [Step(random_name(size), 12, measure(size)) for size in setup.random]


def random_section(setup, results):
    section = Section(
        "random",
        "Random models over trees and features",
        "Figures 8 and 9, 700 random models on a GPU, 512 and 4,096 rows: searched schedules are 1.5x to 8x as "
        "fast as the fixed strategy of RAPIDS, the more the fewer trees there are, and 2.5x as fast as "
        "Hummingbird.",
    )
    rows, gains = [], []
    for batch in setup.random_batches:
        trees = sorted({size[0] for size in setup.random})
        features = sorted({size[1] for size in setup.random})
        cells = {
            (size[0], size[1]): results[random_name(size)][str(batch)]
            for size in setup.random
            if random_name(size) in results
        }
        if not cells:
            continue
        grid = [
            [cells[t, f]["xgboost"] / min(cells[t, f].values()) if (t, f) in cells else None for f in features]
            for t in trees
        ]
        section.charts.append(
            matrix(
                f"How many times as fast as XGBoost's loops, calls of {batch} rows",
                [f"{f}" for f in features],
                [f"{t} trees" for t in trees],
                grid,
                "features",
                "",
            )
        )
        for (t, f), times in cells.items():
            gains.append((t, times["xgboost"] / times["found"], times["auto"] / min(times.values())))
            rows.append(
                [
                    str(batch),
                    str(t),
                    str(f),
                    *(f"{times[name]:.4f}" for name in ("found", "auto", "xgboost")),
                    ratio(gains[-1][1]),
                ]
            )
    if gains:
        fixed = [gain for _, gain, _ in gains]
        fewest, most = (geometric_mean([g for t, g, _ in gains if t == pick(trees)]) for pick in (min, max))
        section.found.append(
            verdict(
                min(fixed) >= 1.5,
                "the fixed strategy here is the schedule xgboost, blocks of 64 rows tree by tree, run by the same VM, "
                "which says nothing of XGBoost's own speed. The searched schedule is "
                f"{ratio(min(fixed))} to {ratio(max(fixed))} as fast, {ratio(geometric_mean(fixed))} in the geometric "
                "mean. It may encode rows and walk many of them in lockstep, which the schedule xgboost does not.",
            )
        )
        if min(trees) < max(trees):
            section.found.append(
                verdict(
                    fewest > most,
                    f"with {min(trees)} trees the mean is {ratio(fewest)}, with {max(trees)} {ratio(most)}. More "
                    "trees share the cost of encoding a row.",
                )
            )
        section.found.append(
            f"The schedule auto takes {ratio(geometric_mean([a for _, _, a in gains]))} of the best time in the "
            f"geometric mean, {ratio(max(a for _, _, a in gains))} at most."
        )
    section.tables.append(
        Table(
            "us per row",
            ["rows", "trees", "features", "searched", "auto", "xgboost", "xgboost / searched"],
            rows,
            0,
        )
    )
    return section


EXPERIMENTS = (
    Experiment("trees", "trees in parallel for few rows (section 9.4)", trees_steps, trees_section),
    Experiment("random", "random models over trees and features (figures 8 and 9)", random_steps, random_section),
)
