"""The experiments on GPUs: by the accounting, which bounds a row's time by instructions, loads and memory, and on a GPU
if there is one. The accounting models neither latencies nor launches."""

import random
from statistics import geometric_mean, median

from charts import dots, histograms, matrix
from experiment import CLOSE, Experiment, few_are_close, ratio, share, verdict
from loops import random_name
from page import Section, Table
from steps import Step

TEMPLATE = 5184  # points of the template of GPU schedules
HEAT = 12  # schedules that are timed beside each other on a GPU


def costs_name(forest):
    return f"costs/{forest.name}"


def costs_steps(setup):
    def measure(forest):
        return lambda _: setup.forestvm.costs(forest.model, setup.gpu_batches, setup.gpu_devices, setup.gpu_every)

    return [Step(costs_name(forest), 60 / setup.gpu_every, measure(forest)) for forest in setup.searchable()]


class Account:
    """The accounting of a model's schedules, from a step's result."""

    def __init__(self, result, setup):
        self.result = result
        self.cases = [(batch, device) for batch in setup.gpu_batches for device in setup.gpu_devices]

    def of(self, batch, device):
        """Returns the costs of the points, {number: us}, and algorithm 1's choice and number of tries."""
        case = self.cases.index((batch, device))
        points = {number: costs[case] for number, costs in self.result["points"].items() if costs[case]}
        chosen = [choice for choice in self.result["algorithm"] if choice["case"] == case]
        return points, (chosen[0]["point"] if chosen else None), (chosen[0]["tried"] if chosen else 0)


def accounts(setup, results, forests=None):
    """Yields (forest, its accounting) for the forests that have one."""
    for forest in forests or setup.searchable():
        if costs_name(forest) in results:
            yield forest, Account(results[costs_name(forest)], setup)


# The template's schedules


def space_section(setup, results):
    section = Section(
        "gpu-space",
        "Times over the template of GPU schedules, by the accounting",
        "Figure 5, measured on an RTX 4060: very few of the 5,184 schedules perform close to the best, while a "
        "vast majority perform poorly.",
    )
    device, rows, close, medians = setup.gpu_devices[0], [], [], []
    batches = [batch for batch in (512, 4096) if batch in setup.gpu_batches]
    for batch in batches:
        series = {}
        for forest, account in accounts(setup, results):
            points, _, _ = account.of(batch, device)
            if not points:
                continue
            best = min(points.values())
            ratios = [cost / best for cost in points.values()]
            series[forest.name] = ratios
            close.append(sum(value <= CLOSE for value in ratios) / len(ratios))
            medians.append(median(ratios))
            within = [share(sum(value <= limit for value in ratios), len(ratios)) for limit in (CLOSE, 2, 5)]
            rows.append(
                [
                    forest.name,
                    str(batch),
                    str(len(ratios)),
                    str(account.result["refused"]),
                    *within,
                    ratio(median(ratios)),
                    ratio(max(ratios)),
                ]
            )
        if series:
            section.charts.append(
                histograms(
                    f"Schedules by their accounted time, as a multiple of the best one's, {device}, calls of "
                    f"{batch} rows",
                    series,
                )
            )
    section.tables.append(
        Table(
            f"Schedules within a multiple of the best accounted time, {device}",
            ["model", "rows", "accounted", "refused", f"{CLOSE}x", "2x", "5x", "median", "slowest"],
            rows,
        )
    )
    if close:
        section.found.append(
            few_are_close(close, medians)
            + " These are bounds by instructions, loads and memory: many schedules that differ in latencies only "
            "have the same bound, so that more of them look close to the best than a GPU would show."
        )
    return section


# Algorithm 1 against all points


def heuristic_section(setup, results):
    section = Section(
        "gpu-heuristic",
        "Algorithm 1 against the whole template, by the accounting",
        "Figure 11, RTX 4060: the schedule of algorithm 1 is well within 5% of the best of 5,184, in 1/80 to "
        "1/100 of the time.",
    )
    device, rows, labels, slowdowns = setup.gpu_devices[0], [], [], {batch: [] for batch in setup.gpu_batches}
    for forest, account in accounts(setup, results):
        labels.append(forest.name)
        for batch in setup.gpu_batches:
            points, chosen, tried = account.of(batch, device)
            best = min(points, key=points.get, default=None)
            known = chosen is not None and best is not None
            slowdowns[batch].append(points[chosen] / points[best] if known else None)
            if known:
                rows.append(
                    [
                        forest.name,
                        str(batch),
                        chosen,
                        best,
                        f"{points[chosen]:.4g}",
                        f"{points[best]:.4g}",
                        str(tried),
                        str(len(points)),
                        ratio(slowdowns[batch][-1]),
                    ]
                )
    every = [value for column in slowdowns.values() for value in column if value]
    if every:
        section.charts.append(
            dots(
                f"Algorithm 1's accounted time divided by the best point's, {device}",
                labels,
                {f"{batch} rows": column for batch, column in slowdowns.items()},
            )
        )
        mean, within = geometric_mean(every), sum(value <= 1.05 for value in every)
        section.found.append(
            verdict(
                mean <= 1.05,
                f"algorithm 1's schedule takes {ratio(mean)} of the best accounted time in the geometric mean, "
                f"{ratio(max(every))} at most, and is within 5% in {within} of {len(every)} cases; it tries 39 "
                "points of those that can be compiled. Its rules about lockstep and unrolled walks save latency, "
                "which the accounting does not see, so that a point that it leaves out can have a lower bound and "
                "yet be slower on a GPU.",
            )
        )
    section.tables.append(
        Table(
            f"Accounted us per row, {device}; points are numbers of forestvm tune --list-space gpu",
            [
                "model",
                "rows",
                "algorithm 1",
                "best",
                "us of algorithm 1",
                "us of the best",
                "tried",
                "accounted",
                "ratio",
            ],
            rows,
        )
    )
    return section


# One GPU's schedule on another GPU


def transfer_section(setup, results):
    home, *others = setup.gpu_devices
    section = Section(
        "gpu-transfer",
        "One GPU's schedule on another, by the accounting",
        "Figure 12: a T400's own schedule is 1.05x to 1.2x as fast as that of an RTX 4060, 2x at most; an MI210's "
        "own schedule is 1.5x as fast for 16,384 rows, 2x at most.",
    )
    rows, gains = [], {}
    for device in others:
        for batch in setup.gpu_batches:
            for forest, account in accounts(setup, results):
                points, own, _ = account.of(batch, device)
                _, foreign, _ = account.of(batch, home)
                if own in points and foreign in points:
                    gains.setdefault((device, batch), []).append((points[foreign] / points[own], forest.name))
    for (device, batch), column in gains.items():
        worst = max(column)
        rows.append(
            [device, str(batch), ratio(geometric_mean([gain for gain, _ in column])), ratio(worst[0]), worst[1]]
        )
    if gains:
        section.charts.append(
            dots(
                f"Accounted time with the schedule for {home} divided by that with the device's own",
                [f"{batch} rows" for batch in setup.gpu_batches],
                {
                    device: [
                        (
                            geometric_mean([gain for gain, _ in gains[device, batch]])
                            if (device, batch) in gains
                            else None
                        )
                        for batch in setup.gpu_batches
                    ]
                    for device in others
                },
            )
        )
        every = [gain for column in gains.values() for gain, _ in column]
        section.found.append(
            verdict(
                max(every) >= 1.05,
                f"algorithm 1's schedule for {home} takes {ratio(geometric_mean(every))} of the time of its own "
                f"choice for {' and '.join(others)} in the geometric mean, {ratio(max(every))} at most. The "
                "devices stand for those of the paper, whose data sheets are not among the accounting's.",
            )
        )
    section.tables.append(
        Table(
            "Accounted time with another GPU's schedule, divided by that with its own",
            ["device", "rows", "geometric mean", "largest", "model"],
            rows,
        )
    )
    return section


# Random models


def random_steps(setup):
    def measure(size):
        def costs(_):
            forest = setup.drawn(*size)
            return setup.forestvm.costs(forest.model, setup.gpu_batches, setup.gpu_devices[:1], TEMPLATE)

        return costs

    return [Step(f"costs/{random_name(size)}", 4, measure(size)) for size in setup.random]


def random_section(setup, results):
    section = Section(
        "gpu-random",
        "Random models against RAPIDS' strategy, by the accounting",
        "Figure 8, RTX 4060: kernels are 1.5x to 8x as fast as those of RAPIDS; the fewer trees, the more; about "
        "2x from 300 trees on.",
    )
    rows, gains = [], []
    for i, batch in enumerate(setup.gpu_batches):
        cells = {}
        for size in setup.random:
            result = results.get(f"costs/{random_name(size)}")
            chosen = [one for one in result["algorithm"] if one["case"] == i] if result else []
            fixed = result["named"]["rapids-fil"][i] if result else None
            if not chosen or not fixed:
                continue
            own = result["points"][chosen[0]["point"]][i]
            cells[size[0], size[1]] = fixed / own
            gains.append(fixed / own)
            rows.append([str(batch), str(size[0]), str(size[1]), f"{own:.4g}", f"{fixed:.4g}", ratio(fixed / own)])
        if cells:
            trees, features = (sorted({size[k] for size in setup.random}) for k in (0, 1))
            grid = [[cells.get((t, f)) for f in features] for t in trees]
            section.charts.append(
                matrix(
                    f"Accounted time of the schedule rapids-fil divided by algorithm 1's, calls of {batch} rows",
                    [f"{f}" for f in features],
                    [f"{t} trees" for t in trees],
                    grid,
                    "features",
                    "",
                )
            )
    if gains:
        section.found.append(
            verdict(
                min(gains) >= 1.5,
                f"algorithm 1's schedule is {ratio(min(gains))} to {ratio(max(gains))} as fast as the schedule "
                f"rapids-fil by the accounting, {ratio(geometric_mean(gains))} in the geometric mean. Both run in "
                "forestvm's kernels, so that this compares strategies of loops and layouts, not libraries. The "
                "schedule rapids-fil has 4 rows a block and a thread for each tree, more threads than a point of "
                "the template; the accounting counts neither the latencies nor the barriers that they cost.",
            )
        )
    section.tables.append(
        Table(
            f"Accounted us per row, {setup.gpu_devices[0]}",
            ["rows", "trees", "features", "algorithm 1", "rapids-fil", "ratio"],
            rows,
            0,
        )
    )
    return section


# On a GPU


def measured_name(forest, batch):
    return f"gpu/{forest.name}/{batch}"


def measured_steps(setup):
    if not setup.gpu:
        return []
    steps = costs_steps(setup)

    def measure(forest, batch):
        return lambda results: measured(setup, forest, batch, results.get(costs_name(forest)))

    for forest in setup.searchable():
        steps += [Step(measured_name(forest, batch), 60, measure(forest, batch)) for batch in setup.gpu_batches]
    return steps


def measured(setup, forest, batch, costs):
    """Times algorithm 1's points, points drawn at random, and named schedules. Returns their times by name."""
    space = setup.forestvm.gpu_space(forest.model)
    texts = dict(space.values())
    first = [space[number][0] for number, rows in (costs or {"first": {}})["first"].items() if batch in rows]
    drawn = random.Random(1).sample(sorted(texts), min(setup.gpu_points, len(texts)))
    times = timed(setup, forest, batch, {name: texts[name] for name in dict.fromkeys(first + drawn)})
    fastest = sorted((name for name in first if name in times), key=times.get)[:3]
    shared = [name.replace("shared-reduce=no", "shared-reduce=yes") for name in fastest]
    times.update(timed(setup, forest, batch, {name: texts[name] for name in shared if name in texts}))
    named = setup.forestvm.times_of_legal(
        forest.model, "", batch, {"gpu": "gpu", "rapids-fil": "rapids-fil"}, contract="fast", backend=setup.gpu
    )
    return dict(times=times, tried=[*first, *shared], named=named)


def timed(setup, forest, batch, schedules):
    names, times = list(schedules), {}
    for begin in range(0, len(names), HEAT):
        heat = {name: schedules[name] for name in names[begin : begin + HEAT]}
        times.update(
            setup.forestvm.times_of_legal(forest.model, "", batch, heat, contract="fast", backend=setup.gpu)
        )
    return times


def measured_section(setup, results):
    section = Section(
        "gpu-measured",
        "Schedules on a GPU",
        "Figures 5, 8 and 11, RTX 4060: few schedules are close to the best; algorithm 1's is within 5% of it and "
        "1.5x to 8x as fast as RAPIDS' strategy.",
    )
    rows, slowdowns, series = [], [], {}
    for forest in setup.searchable():
        for batch in setup.gpu_batches:
            result = results.get(measured_name(forest, batch))
            tried = (
                {name: result["times"][name] for name in result["tried"] if name in result["times"]}
                if result
                else {}
            )
            if not tried:
                continue
            best, own = min(result["times"].values()), min(tried.values())
            series[f"{forest.name}, {batch}"] = [time / best for time in result["times"].values()]
            slowdowns.append(own / best)
            rows.append(
                [
                    forest.name,
                    str(batch),
                    str(len(result["times"])),
                    f"{best:.4g}",
                    f"{own:.4g}",
                    *(f"{result['named'][name]:.4g}" for name in ("gpu", "rapids-fil")),
                    ratio(own / best),
                ]
            )
    if not rows:
        section.found.append(
            "No GPU was found here, so that nothing was measured: the sections before show what the accounting "
            "says."
        )
        return section
    section.charts.append(histograms("Schedules by their time on the GPU, as a multiple of the best one's", series))
    mean = geometric_mean(slowdowns)
    said = (
        f"algorithm 1's schedule takes {ratio(mean)} of the best time among its own points and those drawn at "
        f"random, in the geometric mean, {ratio(max(slowdowns))} at most."
    )
    if setup.gpu == "emulator":
        section.found.append(f"These are times of the emulator, which say nothing of a GPU: {said}")
    else:
        section.found.append(verdict(mean <= 1.05, said))
    section.tables.append(
        Table(
            "us per row, rows on the host",
            ["model", "rows", "measured", "best", "algorithm 1", "gpu", "rapids-fil", "algorithm 1 / best"],
            rows,
        )
    )
    return section


EXPERIMENTS = (
    Experiment(
        "gpu-space", "times over the template of GPU schedules, accounted (figure 5)", costs_steps, space_section
    ),
    Experiment(
        "gpu-heuristic",
        "algorithm 1 against the whole template, accounted (figure 11)",
        costs_steps,
        heuristic_section,
    ),
    Experiment(
        "gpu-transfer", "one GPU's schedule on another, accounted (figure 12)", costs_steps, transfer_section
    ),
    Experiment(
        "gpu-random", "random models against RAPIDS' strategy, accounted (figure 8)", random_steps, random_section
    ),
    Experiment(
        "gpu-measured",
        "GPU schedules on a GPU, if there is one (figures 5, 8, 11)",
        measured_steps,
        measured_section,
    ),
)
