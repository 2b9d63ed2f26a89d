"""The experiments on this machine's processor: schedules used where they are not the best, the distribution of times,
the heuristic search against the exhaustive one, trees in parallel, random models."""

from charts import dots, histograms, matrix
from experiment import Experiment, geometric_mean, median, ratio, share, verdict, without_none
from page import Section, Table
from steps import Step

CLOSE, WORST = 1.1, 64


def best_name(forest, batch):
    return f"best/{forest.name}/{batch}"


def found(report):
    """Returns the best schedule of the space in a report of forestvm tune. The schedule `auto` has a plan for each
    number of rows, so that it cannot stand for one schedule."""
    (batch,) = report["batches"]
    single = [finalist for finalist in batch["finalists"] if finalist["name"] != "auto"]
    best = (single or batch["finalists"])[0]
    return dict(name=best["name"], schedule=best["schedule"], measured=report["schedules"]["measured"])


def best_steps(setup, forest, batches):
    """Returns steps that find the best schedule for each number of rows, by the heuristic search."""

    def measure(batch):
        def search(_):
            seconds = setup.search_seconds
            return found(setup.forestvm.search(forest.model, forest.rows, batch, "heuristic", seconds))

        return search

    return [Step(best_name(forest, batch), 3, measure(batch)) for batch in batches]


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
    return [(row, column, time / times[row])
            for row, times in cells.items() if row in times for column, time in times.items()]


def batches_section(setup, results):
    section = Section("batches", "Best schedules, used for other numbers of rows", "Figure 2a and section 2.1: the best "
                      "schedule for a smaller number of rows is 2x slower for a larger one, and vice versa; over all "
                      "models, the largest slowdown is 5x.")
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
            section.charts.append(matrix(f"{forest.name}: slowdown with the best schedule for another number of rows",
                                         [*names, "auto"], names, grid, "schedule for rows", "rows of a call"))
    section.tables.append(Table("Largest slowdowns", ["model", "schedule for fewer rows", "schedule for more rows",
                                                      "auto"], rows))
    if slower:
        many = sum(value >= 2 for value in slower)
        section.found.append(verdict(
            max(slower) >= 2, f"the largest slowdown is {ratio(max(slower))}, the geometric mean "
            f"{ratio(geometric_mean(slower))}; {share(many, len(slower))} of the {len(slower)} exchanges cost 2x or more. "
            "The host's space spans more than the paper's schedules: scalar walks, vectors of rows or of trees, tables."))
        section.found.append(f"The schedule auto, which has a plan for each range of rows and is chosen without "
                             f"measuring, takes at most {ratio(max(automatic))} of the best schedule's time, "
                             f"{ratio(geometric_mean(automatic))} in the geometric mean.")
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
    section = Section("models", "Best schedules, used for other models", "Figure 2b and section 2.1, calls of 4,096 "
                      "rows: the slowdown is much worse across models; in about 20% of the cases, the best schedule for "
                      "one model makes another 5x slower.")
    times = {forest.name: results.get(f"models/{forest.name}") for forest in setup.forests}
    times = {name: cells for name, cells in times.items() if cells and name in cells}
    if not times:
        return section
    slowdowns = {(row, column): value for row, column, value in exchanged(times)}
    names = list(times)
    grid = [[slowdowns.get((row, column)) for column in names] for row in names]
    section.charts.append(matrix(f"Slowdown with another model's best schedule, calls of {setup.models_batch} rows",
                                 names, names, grid, "best schedule of", "model"))
    other = [value for (row, column), value in slowdowns.items() if row != column]
    refused = len(names) * (len(names) - 1) - len(other)
    schedules = len({results[best_name(forest, setup.models_batch)]["schedule"]
                     for forest in setup.forests if forest.name in times})
    if other:
        many = sum(value >= 5 for value in other)
        section.found.append(verdict(
            many / len(other) >= 0.1, f"{share(many, len(other))} of the {len(other)} exchanges cost 5x or more; the "
            f"largest slowdown is {ratio(max(other))}, the geometric mean {ratio(geometric_mean(other))}. The "
            f"{len(names)} models have {schedules} different best schedules, and {refused} exchanges are refused, "
            "because the other model's trees do not fit the layout."))
    section.tables.append(Table("Slowdowns by model (line) and schedule (column)", ["model", *names],
                                [[row, *map(ratio, line)] for row, line in zip(names, grid)]))
    return section


# The whole space


def space_name(forest, batch):
    return f"space/{forest.name}/{batch}"


def space_steps(setup):
    def measure(forest, batch):
        def search(_):
            report = setup.forestvm.search(forest.model, forest.rows, batch, "exhaustive", setup.space_seconds)
            ratios = [trial["of_auto"][0] for trial in report["trials"] if trial["of_auto"][0] > 0]
            return dict(found(report), of_auto=ratios, planned=report["schedules"]["planned"],
                        refused=report["schedules"]["refused"])

        return search

    return [Step(space_name(forest, batch), setup.space_seconds, measure(forest, batch))
            for forest in setup.searchable() for batch in setup.space_batches]


def space_section(setup, results):
    section = Section("space", "Times over the space of schedules", "Figure 5, 5,184 schedules on a GPU: very few "
                      "schedules perform close to the best, while a vast majority perform poorly.")
    rows, close, medians = [], [], []
    for batch in setup.space_batches:
        series = {}
        for forest in setup.searchable():
            search = results.get(space_name(forest, batch))
            if not search or not search["of_auto"]:
                continue
            best = min(search["of_auto"])
            ratios = [value / best for value in search["of_auto"]]
            series[forest.name] = ratios
            close.append(sum(value <= CLOSE for value in ratios) / len(ratios))
            medians.append(median(ratios))
            within = [share(sum(value <= limit for value in ratios), len(ratios)) for limit in (CLOSE, 2, 5)]
            rows.append([forest.name, str(batch), str(len(ratios)), *within, ratio(median(ratios)), ratio(max(ratios))])
        if series:
            section.charts.append(histograms("Schedules by their time, as a multiple of the best one's, calls of "
                                             f"{batch} {'row' if batch == 1 else 'rows'}", series))
    section.tables.append(Table("Schedules within a multiple of the best time",
                                ["model", "rows", "measured", f"{CLOSE}x", "2x", "5x", "median", "slowest"], rows))
    if close:
        section.found.append(verdict(
            max(close) <= 0.1 and min(medians) >= 2, f"{100 * min(close):.1f}% to {100 * max(close):.1f}% of the schedules "
            f"are within {CLOSE}x of the best, and the median schedule takes {ratio(min(medians))} to "
            f"{ratio(max(medians))} of its time. The schedules are those of the host's space that were measured until "
            "the search's time ended: the few dozen of the heuristic, then points drawn at random."))
    return section


# The heuristic against the exhaustive search


def heuristic_steps(setup):
    steps = space_steps(setup)
    for forest in setup.searchable():
        steps += best_steps(setup, forest, setup.space_batches)
        for batch in setup.space_batches:

            def measure(results, forest=forest, batch=batch):
                heuristic, space = results.get(best_name(forest, batch)), results.get(space_name(forest, batch))
                if not heuristic or not space:
                    return {}
                schedules = dict(heuristic=heuristic["schedule"], exhaustive=space["schedule"], auto="auto")
                return setup.forestvm.times(forest.model, forest.rows, batch, schedules)

            steps.append(Step(f"chosen/{forest.name}/{batch}", 3, measure))
    return steps


def heuristic_section(setup, results):
    section = Section("heuristic", "The heuristic search against the exhaustive one", "Figure 11: the heuristic's "
                      "schedule is well within 5% of the best one, in 1/80 to 1/100 of the time. Section 8.3: on CPUs, "
                      "trying a small set of schedules is enough.")
    rows, labels, slowdowns, automatic = [], [], [], []
    for batch in setup.space_batches:
        for forest in setup.searchable():
            times, search = results.get(f"chosen/{forest.name}/{batch}"), results.get(space_name(forest, batch))
            if not times or len(times) < 3:
                continue
            best = min(times.values())
            labels.append(f"{forest.name}, {batch}")
            slowdowns.append(times["heuristic"] / best)
            automatic.append(times["auto"] / best)
            tried = results[best_name(forest, batch)]["measured"]
            rows.append([forest.name, str(batch), str(tried), str(search["measured"]),
                         *(f"{times[name]:.4f}" for name in ("heuristic", "exhaustive", "auto")),
                         ratio(slowdowns[-1]), ratio(automatic[-1])])
    if rows:
        section.charts.append(dots("Times as multiples of the best of the three, by model and rows per call", labels,
                                   {"heuristic": slowdowns, "auto": automatic}))
        share_tried = median([int(row[2]) / int(row[3]) for row in rows])
        mean, worst = geometric_mean(slowdowns), max(slowdowns)
        section.found.append(verdict(
            mean <= 1.05, f"the heuristic's schedule takes {ratio(mean)} of the best time in the geometric mean, "
            f"{ratio(worst)} at most, after {share(share_tried, 1)} (median) of the measurements of the longer search, "
            "which ended before it had tried the whole space. The schedule auto, without any search, takes "
            f"{ratio(geometric_mean(automatic))} in the geometric mean, {ratio(max(automatic))} at most."))
    section.tables.append(Table("us per row of the chosen schedules, timed in turns",
                                ["model", "rows", "heuristic tried", "exhaustive tried", "heuristic", "exhaustive", "auto",
                                 "heuristic / best", "auto / best"], rows))
    return section


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
    section = Section("trees", "Trees in parallel for few rows", "Section 9.4, 16 virtual cores: for calls of 32 rows, the "
                      "best schedule with trees in parallel is 2.2x as fast as the best one with rows in parallel, in the "
                      "geometric mean over 8 models, 5x at most, and faster for all models; for 64 rows 1.1x, 2x at most, "
                      "and for 2 of the 8 models rows in parallel are faster.")
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
        section.charts.append(dots(f"Time with rows in parallel divided by the time with trees in parallel, {threads}",
                                   names, {f"{batch} {'row' if batch == 1 else 'rows'}": gains[batch] for batch in shown}))
        means = {batch: geometric_mean(without_none(column)) for batch, column in gains.items() if any(column)}
        said = ", ".join(f"{ratio(mean)} at {batch}" for batch, mean in means.items())
        few = means.get(32, 1.0)
        section.found.append(verdict(
            few > 1.05, f"with {threads}, trees in parallel are this many times as fast as rows in parallel, by rows per "
            f"call: {said}. Either is the fastest of its schedules; those with rows in parallel have blocks of 64 rows or a "
            "block for each thread. None of them encodes rows or has tables, as forestvm's own schedules do."))
    head = ["model", *(f"{batch} rows" for batch in setup.tree_batches)]
    rows = [[name, *(ratio(gains[batch][i]) for batch in setup.tree_batches)] for i, name in enumerate(names)]
    section.tables.append(Table("Time with rows in parallel divided by the time with trees in parallel", head, rows))
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
    section = Section("random", "Random models over trees and features", "Figures 8 and 9, 700 random models on a GPU, 512 "
                      "and 4,096 rows: searched schedules are 1.5x to 8x as fast as the fixed strategy of RAPIDS, the more "
                      "the fewer trees there are, and 2.5x as fast as Hummingbird.")
    rows, gains = [], []
    for batch in setup.random_batches:
        trees = sorted({size[0] for size in setup.random})
        features = sorted({size[1] for size in setup.random})
        cells = {(size[0], size[1]): results[random_name(size)][str(batch)]
                 for size in setup.random if random_name(size) in results}
        if not cells:
            continue
        grid = [[cells[t, f]["xgboost"] / min(cells[t, f].values()) if (t, f) in cells else None for f in features]
                for t in trees]
        section.charts.append(matrix(f"How many times as fast as XGBoost's loops, calls of {batch} rows",
                                     [f"{f}" for f in features], [f"{t} trees" for t in trees], grid, "features", ""))
        for (t, f), times in cells.items():
            gains.append((t, times["xgboost"] / times["found"], times["auto"] / min(times.values())))
            rows.append([str(batch), str(t), str(f), *(f"{times[name]:.4f}" for name in ("found", "auto", "xgboost")),
                         ratio(gains[-1][1])])
    if gains:
        fixed = [gain for _, gain, _ in gains]
        fewest, most = (geometric_mean([g for t, g, _ in gains if t == pick(trees)]) for pick in (min, max))
        section.found.append(verdict(
            min(fixed) >= 1.5, f"the fixed strategy here is the schedule xgboost, blocks of 64 rows tree by tree, run by "
            f"the same VM. The searched schedule is {ratio(min(fixed))} to {ratio(max(fixed))} as fast, "
            f"{ratio(geometric_mean(fixed))} in the geometric mean."))
        section.found.append(verdict(
            fewest > most, f"with the fewest trees the mean is {ratio(fewest)}, with the most {ratio(most)}."))
        section.found.append(f"The schedule auto takes {ratio(geometric_mean([a for _, _, a in gains]))} of the best time in "
                             f"the geometric mean, {ratio(max(a for _, _, a in gains))} at most.")
    section.tables.append(Table("us per row", ["rows", "trees", "features", "searched", "auto", "xgboost",
                                               "xgboost / searched"], rows, 0))
    return section


EXPERIMENTS = (
    Experiment("batches", "best schedules, used for other numbers of rows (figure 2a)", batches_steps, batches_section),
    Experiment("models", "best schedules, used for other models (figure 2b)", models_steps, models_section),
    Experiment("space", "times over the host's space of schedules (figure 5)", space_steps, space_section),
    Experiment("heuristic", "heuristic against exhaustive search (figure 11, section 8.3)", heuristic_steps,
               heuristic_section),
    Experiment("trees", "trees in parallel for few rows (section 9.4)", trees_steps, trees_section),
    Experiment("random", "random models over trees and features (figures 8 and 9)", random_steps, random_section),
)
