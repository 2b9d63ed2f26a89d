"""Writes the kit's report, report.md and report.json, from the state of its plan."""

import json, time

import report, runs, steps

SHOWN = 10  # reasons of refusals


def told(found):
    """Says in a sentence what is wrong."""
    if "differing" in found:
        return (
            f"{found['item']}: {found['way']}, {found['batch']} rows: {found['differing']} of {found['of']} scores "
            f"differ; the first, row {found['row']}, output {found['output']}, has bits {found['got']}, expected "
            f"{found['expected']}"
        )
    return f"{found.get('item') or 'no program'}: {found['error']}"


def has_failed(name, state, stopped):
    if state["broken"] or (stopped and stopped["step"] == name):
        return True
    lines = state["done"].values()
    lines = [inner for line in lines for inner in (line, *line.get("lines", []))]
    if any(line.get("error") or line.get("result", "passed") != "passed" for line in lines):
        return True
    # Some programs may be refused. A step in which the GPU refuses all of them counts as failed.
    return bool(lines) and all(line.get("refused") for line in lines)


def failed(data):
    return [name for name, state in data["steps"].items() if has_failed(name, state, data["stopped"])]


def result(name, state, stopped):
    """Returns the result of a step: passed, failed, skipped, partly, not run; and the reason."""
    if has_failed(name, state, stopped):
        return "failed", state["ended"] if state["ended"] != "done" else None
    if state["skipped"]:
        return "skipped", state["skipped"]
    if state["ended"] == "done":
        return "passed", None
    return ("partly", state["ended"] or "another call goes on") if state["done"] else ("not run", state["ended"])


def refusals(done):
    """Returns reason -> (programs, one of them)."""
    found = {}
    for name, line in done.items():
        for way, reason in line.get("refused", {}).items():
            found.setdefault(f"{way}: {reason.replace(name, '')}", []).append(name)
    return {reason: (len(names), names[0]) for reason, names in sorted(found.items(), key=lambda one: -len(one[1]))}


def details_of_answers(done):
    rows = sum(line["compared"] for line in done.values())
    whole = sum(not line["refused"] for line in done.values())
    text = f"{len(done)} programs, {rows} rows of raw scores have the host's bits; {whole} programs in all ways.\n"
    found = refusals(done)
    if found:
        text += "\n" + report.table(["refused", "programs", "one of them"],
                                    [[reason, *count] for reason, count in list(found.items())[:SHOWN]])
    return text


def details_of_sanitizers(done):
    text = f"{sum(line['programs'] for line in done.values())} programs.\n"
    for line in done.values():
        if line["result"] != "passed":
            text += f"\n{line['result']}:\n\n```text\n" + "\n".join(line["output"]) + "\n```\n"
    return text


def details_of_times(done):
    lines = list(done.values())
    every = [
        [line["model"], line["batch"], label, report.number(us)]
        for line in lines
        for label, us in sorted(line.get("kernels", {}).items(), key=lambda one: one[1] or float("inf"))
    ]
    text = "Microseconds a call. A ratio is nvForest's time over forestvm's.\n\n" + report.b3(lines)
    if every:
        text += "\nKernels of each schedule:\n\n" + report.table(["model", "rows", "schedule", "us"], every)
    return text


def details_of_counters(done):
    body = []
    for name, line in done.items():
        body += [[name, "-", "-", line["error"].replace("\n", " ")]] if "error" in line else [
            [name, launch["kernel"], counter, value]
            for launch in line["kernels"]
            for counter, value in launch["counters"].items()
        ]
    return report.table(["cell", "kernel", "counter", "value"], body)


def details_of_shapes(done):
    """Makes the table of the fastest forms of blocks; report.json has all of them."""
    body = []
    for line in done.values():
        if "error" in line:
            continue
        seen = sorted((us, label) for label, us in line["kernels"].items() if us is not None)
        body.append([line["model"], line["batch"], ", ".join(f"{label}: {report.number(us)}" for us, label in seen[:5])])
    text = "Rows of a block x threads that share the trees of a row, and microseconds of kernels a call.\n\n"
    return text + report.table(["model", "rows", "fastest"], body) + report.errors(list(done.values()))


def details_of_profiles(done):
    body = [[name, line.get("error") or ", ".join(line["files"])] for name, line in done.items()]
    return "Where warps wait, by machine instruction, in the folder profiles.\n\n" + report.table(["cell", "files"], body)


def details(name, state):
    done = state["done"]
    if not done:
        return ""
    if name in ("first answers", "answers", "captures"):
        return details_of_answers(done)
    if name in ("memcheck", "racecheck", "synccheck", "initcheck"):
        return details_of_sanitizers(done)
    if name == "times":
        return details_of_times(done)
    if name == "shapes":
        return details_of_shapes(done)
    if name == "interpreter":
        return report.b2([line for one in done.values() for line in one["lines"]])
    if name == "counters":
        return details_of_counters(done)
    if name == "profiles":
        return details_of_profiles(done)
    return report.b0(list(done.values()))


def write(kit, data, folder):
    """Replaces the report's files."""
    every = [(name, data["steps"].get(name) or runs.new_step()) for name, _, _ in steps.STEPS]
    lines = []
    for name, state in every:
        outcome, reason = result(name, state, data["stopped"])
        lines.append(dict(step=name, result=outcome, reason=reason, seconds=round(state["seconds"], 1),
                          items=len(state["done"])))
    found = dict(every)["device"]["done"].get("device", {})
    dates = {key: time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(at))
             for key, at in (("begun", data["begun"]), ("written", time.time()))}
    facts = dict(dates, calls=data["calls"], kit=data["kit"], device=found)
    whole = dict(facts, stopped=data["stopped"], left_out_of_the_kit=len(kit.plan["left_out"]), steps=lines,
                 results={name: state["done"] for name, state in every})
    runs.replace_file(f"{folder}/report.json", json.dumps(whole, indent=1))
    runs.replace_file(f"{folder}/report.md", text_of(data, facts, every, lines))


def text_of(data, facts, every, lines):
    kit = data["kit"]
    text = "# Report of the kit\n\n"
    if kit["emulated"]:
        text += "**A rehearsal: the emulator took the GPU's place, and no GPU was used.**\n\n"
    device = facts["device"]
    labels = dict(device="", architecture="", driver_version="driver ", cuda_of_driver="CUDA ")
    named = [label + device[key] for key, label in labels.items() if key in device]
    text += f"- device: {', '.join(named) or 'not known yet'}\n"
    text += f"- date: {facts['begun']} to {facts['written']}, in {facts['calls']} calls\n"
    text += f"- kit: {kit['version']}, commit {kit['commit'] or 'unknown'}, "
    text += f"for {kit['architecture'] or 'the emulator'}, made {kit['made']}\n\n"
    if data["stopped"]:
        text += f"**Stopped in step {data['stopped']['step']}**: {told(data['stopped'])}\n\n"
        if "memcheck" in data["stopped"]:
            text += f"memcheck on this case:\n\n```text\n{data['stopped']['memcheck']}\n```\n\n"
    body = [[line["step"], line["result"], line["reason"] or "", line["items"], line["seconds"]] for line in lines]
    text += report.table(["step", "result", "", "items", "seconds"], body)
    for name, state in every:
        part = details(name, state)
        if state["broken"]:
            part += f"\nIt broke off:\n\n```text\n{state['broken']}```\n"
        if part:
            text += f"\n## {name}\n\n{part}"
    return text
