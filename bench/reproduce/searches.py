"""Searches on the host: the best schedules by the heuristic, the distribution of times over the space, and the
heuristic against the exhaustive search."""

from statistics import geometric_mean, median

from charts import dots, histograms
from experiment import CLOSE, Experiment, few_are_close, ratio, share, verdict
from page import Section, Table
from steps import Step


def best_name(forest, batch):
    return f"best/{forest.name}/{batch}"


def found(report):
    """Returns what a report of forestvm tune says: its choice, and the best schedule of the space. They differ where
    `auto` stays, which has a plan for each number of rows, so that it cannot stand for one schedule."""
    (batch,) = report["batches"]
    single = [finalist for finalist in batch["finalists"] if finalist["name"] != "auto"]
    best = (single or batch["finalists"])[0]
    measured, complete = report["schedules"]["measured"], report["complete"]
    said = dict(name=best["name"], schedule=best["schedule"], measured=measured, complete=complete)
    return dict(said, chosen=batch["finalists"][0]["schedule"])


def cut_short(forests, batches, results):
    """Returns a sentence about the searches that ended before they had measured all that they had planned."""
    cut = [
        f"{forest.name} at {batch}"
        for forest in forests
        for batch in batches
        if not results.get(best_name(forest, batch), {"complete": True})["complete"]
    ]
    return ["The time of these searches ended before their last schedule: " + ", ".join(cut) + "."] if cut else []


def best_steps(setup, forest, batches):
    """Returns steps that find the best schedule for each number of rows, by the heuristic search."""

    def measure(batch):
        def search(_):
            seconds = setup.search_seconds
            return found(setup.forestvm.search(forest.model, forest.rows, batch, "heuristic", seconds))

        return search

    return [Step(best_name(forest, batch), 3, measure(batch)) for batch in batches]


# The whole space


def space_name(forest, batch):
    return f"space/{forest.name}/{batch}"


def space_steps(setup):
    def measure(forest, batch):
        def search(_):
            report = setup.forestvm.search(forest.model, forest.rows, batch, "exhaustive", setup.space_seconds)
            ratios = [trial["of_auto"][0] for trial in report["trials"] if trial["of_auto"][0] > 0]
            return dict(
                found(report),
                of_auto=ratios,
                planned=report["schedules"]["planned"],
                refused=report["schedules"]["refused"],
            )

        return search

    return [
        Step(space_name(forest, batch), setup.space_seconds, measure(forest, batch))
        for forest in setup.searchable()
        for batch in setup.space_batches
    ]


def space_section(setup, results):
    section = Section(
        "space",
        "Times over the space of schedules",
        "Figure 5, 5,184 schedules on a GPU: very few schedules perform close to the best, while a vast majority "
        "perform poorly.",
    )
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
            rows.append(
                [forest.name, str(batch), str(len(ratios)), *within, ratio(median(ratios)), ratio(max(ratios))]
            )
        if series:
            section.charts.append(
                histograms(
                    f"Schedules by their time, as a multiple of the best one's, calls of {batch} "
                    f"{'row' if batch == 1 else 'rows'}",
                    series,
                )
            )
    section.tables.append(
        Table(
            "Schedules within a multiple of the best time",
            ["model", "rows", "measured", f"{CLOSE}x", "2x", "5x", "median", "slowest"],
            rows,
        )
    )
    if close:
        section.found.append(
            few_are_close(close, medians)
            + " The schedules are those of the host's space that were measured until the search's time ended: "
            "the few dozen of the heuristic, then points drawn at random."
        )
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
                schedules = dict(heuristic=heuristic["chosen"], exhaustive=space["chosen"], auto="auto")
                return setup.forestvm.times(forest.model, forest.rows, batch, schedules)

            steps.append(Step(f"chosen/{forest.name}/{batch}", 3, measure))
    return steps


def heuristic_section(setup, results):
    section = Section(
        "heuristic",
        "The heuristic search against the exhaustive one",
        "Figure 11: the heuristic's schedule is well within 5% of the best one, in 1/80 to 1/100 of the time. "
        "Section 8.3: on CPUs, trying a small set of schedules is enough.",
    )
    rows, labels, slowdowns, exhaustive, automatic, whole = [], [], [], [], [], 0
    for batch in setup.space_batches:
        for forest in setup.searchable():
            times, search = results.get(f"chosen/{forest.name}/{batch}"), results.get(space_name(forest, batch))
            if not times or len(times) < 3:
                continue
            best = min(times.values())
            labels.append(f"{forest.name}, {batch}")
            slowdowns.append(times["heuristic"] / best)
            exhaustive.append(times["exhaustive"] / best)
            automatic.append(times["auto"] / best)
            tried = results[best_name(forest, batch)]["measured"]
            whole += search["measured"] + search["refused"] >= search["planned"]
            rows.append(
                [
                    forest.name,
                    str(batch),
                    str(tried),
                    str(search["measured"]),
                    *(f"{times[name]:.4f}" for name in ("heuristic", "exhaustive", "auto")),
                    ratio(slowdowns[-1]),
                    ratio(automatic[-1]),
                ]
            )
    if rows:
        section.charts.append(
            dots(
                "Times as multiples of the best of the three schedules, by model and rows per call",
                labels,
                {"heuristic": slowdowns, "exhaustive": exhaustive, "auto": automatic},
            )
        )
        share_tried = median([int(row[2]) / int(row[3]) for row in rows])
        mean, worst = geometric_mean(slowdowns), max(slowdowns)
        section.found.append(
            verdict(
                mean <= 1.05,
                "both searches keep the schedule auto where they find no faster one. The heuristic's choice takes "
                f"{ratio(mean)} of the best time in the geometric mean, {ratio(worst)} at most, after "
                f"{share(share_tried, 1)} (median) of the measurements of the longer search, which tried the whole "
                f"space in {whole} of {len(rows)} cases. The schedule auto, without any search, takes "
                f"{ratio(geometric_mean(automatic))} in the geometric mean, {ratio(max(automatic))} at most.",
            )
        )
    section.tables.append(
        Table(
            "us per row of the chosen schedules, timed in turns",
            [
                "model",
                "rows",
                "heuristic tried",
                "exhaustive tried",
                "heuristic",
                "exhaustive",
                "auto",
                "heuristic / best",
                "auto / best",
            ],
            rows,
        )
    )
    return section


EXPERIMENTS = (
    Experiment("space", "times over the host's space of schedules (figure 5)", space_steps, space_section),
    Experiment(
        "heuristic",
        "heuristic against exhaustive search (figure 11, section 8.3)",
        heuristic_steps,
        heuristic_section,
    ),
)
