"""The steps of the kit's plan that time kernels, and that read a GPU's counters. steps.py says what a step is."""

import csv, gzip, json, os, subprocess, sys, time

import answers, report
from runs import GRACE, HANGS, Process, Skip, Stop, TimeUp

WORST = 5  # cells whose counters are read
COUNTED_CALLS = 4
COUNTED_BYTES = 1 << 28  # most bytes of rows in a call whose counters are read
INTERPRETED_BATCHES, INTERPRETED_BYTES = [1, 4096, 100_000, 1 << 20], 1 << 28
SHAPED_BATCHES = [1, 16, 64, 512, 2048, 4096, 16384, 65536]
PROFILED_BATCHES = [1, 4096]
PROFILED_SECTIONS = ["SourceCounters", "WarpStateStats", "SpeedOfLight", "Occupancy", "MemoryWorkloadAnalysis"]
METRICS = ["gpu__time_duration.sum", "smsp__inst_executed.sum",
           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lts__t_sectors.sum",
           "smsp__issue_active.avg.pct_of_peak_sustained_active",
           "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__registers_per_thread"]


def modules(kit, environment, names):
    """Returns the names of the Python modules that are absent."""
    code = f"import importlib.util as i; print(*[n for n in {names!r} if i.find_spec(n) is None])"
    words = [sys.executable, "-c", code]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60).stdout.split()


def python_with(kit, names):
    """Returns an environment whose Python has these modules."""
    environment = kit.site()
    if absent := modules(kit, environment, names):
        raise Skip(f"Python has no {', '.join(absent)}")
    return environment


def times(kit, state, until):
    if kit.plan["emulated"]:
        raise Skip("the kit is a rehearsal: the emulator's times say nothing")
    environment = python_with(kit, ["numpy", "cupy", "torch"])
    beside = not (absent := modules(kit, environment, ["nvforest", "treelite", "rmm"]))
    if not beside:
        kit.say(f"  without nvForest: Python has no {', '.join(absent)}")

    def job(model, folder):
        files = {key: f"{folder}/{model[key]}" for key in ("source", "rows", "expected")}
        return dict(case="b3", **files, programs=model["programs"], outputs=model["outputs"], beside=beside)

    def told_of(name, line):
        kit.say(f"  {name}: {told(line['engines'])}")
        stop_if_wrong(name, line["engines"]["forestvm"])

    return timed(kit, state, until, environment, kit.plan["timed_batches"], job, told_of)


def shapes(kit, state, until):
    """Times the kernels of every form of a block, from which the schedule "gpu" chooses by a model of costs."""
    if kit.plan["emulated"]:
        raise Skip("the kit is a rehearsal: the emulator's times say nothing")
    environment = python_with(kit, ["numpy", "cupy", "torch"])

    def job(model, folder):
        return dict(case="shapes", rows=f"{folder}/{model['rows']}", programs=model["shapes"])

    return timed(kit, state, until, environment, SHAPED_BATCHES, job, lambda name, line: kit.say(f"  {name}"))


def timed(kit, state, until, environment, batches, job_of, told_of):
    """Lets worker.py time the batches of each model that are not done yet. job_of(model, folder) returns its job, with the
    programs' files in the folder; told_of(name, line) is called with each cell's result, after it was kept."""
    for model in kit.plan["timed"]:
        name = model["name"]
        left = [batch for batch in batches if cell(name, batch) not in state["done"]]
        if not left:
            continue
        if time.time() > until:
            return False
        folder = kit.unpack(f"models/{name}")
        job = job_of(model, folder)
        job["programs"] = {label: f"{folder}/{file}" for label, file in job["programs"].items()}
        path = kit.job(job["case"], **job, name=name, batches=left, until=until)
        process, began = kit.python("worker.py", path, environment=environment), time.time()
        try:
            for line in process.said(until + GRACE):
                if "batch" in line:
                    began = time.time()
                    left.remove(line["batch"])
                    state["done"][cell(name, line["batch"])] = dict(line, model=name)
                    told_of(cell(name, line["batch"]), line)
                else:
                    state["done"][f"{name}: {len(state['done'])}"] = dict(line, model=name)
                kit.state.save_sometimes()
        except TimeUp:
            if time.time() - began < HANGS:
                return False
            process.tail.append(f"nothing was said for {HANGS} s")
        if left and (process.process.returncode or time.time() < until):
            # Another attempt would fail too, so the remaining batches of this model are given up.
            why = process.why()
            for batch in left:
                state["done"][cell(name, batch)] = dict(model=name, error=f"{batch} rows: {why}")
                why = "given up"
    return all(cell(model["name"], batch) in state["done"] for model in kit.plan["timed"] for batch in batches)


def stop_if_wrong(name, ours):
    """Raises Stop if timed scores are wrong. Programs are timed under the contract "fast", so scores may differ a
    little from the host's."""
    if report.is_wrong(ours):
        raise Stop(error=f"{name}, schedule {ours['schedule']}: a score is off by {ours['max_difference']}")


def cell(model, batch):
    return f"{model}, {batch} rows"


def told(engines):
    return ", ".join(f"{name} {one['kernel_us']:.4g} us" if one["kernel_us"] else f"{name} -"
                     for name, one in engines.items())


def interpreter(kit, state, until):
    """Times programs of the schedule "gpu", and kernels that walk them without an interpreter."""
    if kit.plan["straight"] is None:
        raise Skip("the kit is a rehearsal and has no program for it")
    environment = python_with(kit, ["numpy", "cupy"])
    for model in kit.plan["timed"]:
        name = model["name"]
        if model["interpreted"] is None or name in state["done"]:
            continue
        if time.time() > until:
            return False
        folder = kit.unpack(f"models/{name}")
        program, rows = f"{folder}/{model['interpreted']}", answers.Array(f"{folder}/rows.npy")
        batches = [batch for batch in INTERPRETED_BATCHES if batch * rows.row_bytes <= INTERPRETED_BYTES]
        job = dict(case="b2", name=name, rows=f"{folder}/rows.npy", expected=f"{folder}/{model['expected']}",
                   programs=dict(gpu=program), outputs=1, batches=batches)
        process = kit.python("worker.py", kit.job("interpreter", **job), environment=environment)
        try:
            lines = [dict(line, model=name, engine="forestvm") for line in process.said(until + GRACE)]
            if process.process.returncode:
                lines.append(dict(model=name, error=process.why()))
            lines += straight(kit, name, program, rows, batches, until + GRACE)
        except TimeUp:
            return False
        state["done"][name] = dict(lines=lines)
    return True


def straight(kit, name, program, rows, batches, end):
    """Returns the times of the kernels without an interpreter."""
    rows.repeated(max(batches))
    values, scores = f"{kit.work}/straight.rows", f"{kit.work}/straight.scores"
    with open(values, "wb") as file:
        file.write(rows.data)
    command = [f"{kit.binaries}/{kit.plan['straight']}", program, values, scores, *map(str, batches)]
    process = Process(command, dict(kit.environment, LD_LIBRARY_PATH=kit.libraries))
    try:
        text = "".join(process.until(end))
    finally:
        os.remove(values)
    if process.process.returncode:
        return [dict(model=name, error=process.why())]
    return [dict(times, model=name, engine="straight", batch=int(batch)) for batch, times in json.loads(text).items()]


def ncu_of(kit):
    if kit.plan["emulated"]:
        raise Skip("the kit is a rehearsal: the emulator has no counters")
    ncu = kit.tool("ncu")
    if ncu is None:
        raise Skip("ncu is absent")
    return ncu


def under_ncu(kit, until, words, model, label, batch):
    """Makes a few calls of a program under ncu. Returns the process, which has ended, and the lines of its output; raises
    TimeUp if it has not ended by `until`."""
    folder = kit.unpack(f"models/{model['name']}")
    item = dict(name=cell(model["name"], batch), program=f"{folder}/{model['programs'][label]}",
                rows=f"{folder}/rows.npy", expected=f"{folder}/{model['expected']}", batches=[batch],
                turns=COUNTED_CALLS, most_bytes=COUNTED_BYTES)
    prefix = [ncu_of(kit), "--clock-control", "none", "--kernel-name", "regex:forestvm_phase", *words]
    process = kit.python("answers.py", kit.job("ncu", kind="calls", items=[item], until=until), prefix)
    return process, list(process.until(until + GRACE))


def profiles(kit, state, until):
    """Keeps where warps of the schedule "gpu" wait, by machine instruction, in files beside the report."""
    ncu, folder = ncu_of(kit), f"{os.path.dirname(kit.state.path)}/profiles"
    os.makedirs(folder, exist_ok=True)
    # Caches keep what the calls before left there, as they do for users.
    words = ["--cache-control", "none", "--launch-skip", "2", "--launch-count", "1", "--sampling-interval", "0", "-f"]
    words += [word for section in PROFILED_SECTIONS for word in ("--section", section)]
    cells = [(model, batch) for model in kit.plan["timed"] if "gpu" in model["programs"] for batch in PROFILED_BATCHES]
    for model, batch in cells:
        name = cell(model["name"], batch)
        if name in state["done"]:
            continue
        if time.time() > until:
            return False
        path = f"{kit.work}/{model['name']}-{batch}"
        try:
            process, _ = under_ncu(kit, until, [*words, "-o", path], model, "gpu", batch)
        except TimeUp:
            return False
        state["done"][name] = pages_of(ncu, path, folder) or dict(error=process.why())
        kit.say(f"  {name}")
    return True


def pages_of(ncu, report_of_ncu, folder):
    """Writes a report's pages as packed CSV. Returns the files' names; None if there is no report."""
    if not os.path.exists(f"{report_of_ncu}.ncu-rep"):
        return None
    names = []
    for page in ("source", "details"):
        words = [ncu, "--import", f"{report_of_ncu}.ncu-rep", "--page", page, "--csv"]
        text = subprocess.run(words, capture_output=True, text=True, timeout=120).stdout
        names.append(f"{os.path.basename(report_of_ncu)}.{page}.csv.gz")
        with gzip.open(f"{folder}/{names[-1]}", "wt") as file:
            file.write(text)
    return dict(files=names)


def worst_cells(kit, done):
    """Returns the cells with the least ratio to nvForest; without nvForest those with the most time for a row and
    tree."""
    trees = {model["name"]: model["trees"] for model in kit.plan["timed"]}
    found = []
    for line in done.values():
        ours, theirs = (line.get("engines", {}).get(name, {}).get("kernel_us") for name in ("forestvm", "nvforest"))
        if ours:
            slow = ours / theirs if theirs else ours / line["batch"] / trees[line["model"]]
            found.append((bool(theirs), slow, line))
    found.sort(key=lambda one: one[:2], reverse=True)
    return [line for _, _, line in found[:WORST]]


def counters(kit, state, until):
    ncu_of(kit)
    worst = worst_cells(kit, kit.state.step("times")["done"])
    if not worst:
        raise Skip("no kernel was timed")
    words = ["--csv", "--launch-skip", "1", "--launch-count", "3", "--metrics", ",".join(METRICS)]
    for line in worst:
        name, label = cell(line["model"], line["batch"]), line["engines"]["forestvm"]["schedule"]
        if name in state["done"]:
            continue
        if time.time() > until:
            return False
        model = next(one for one in kit.plan["timed"] if one["name"] == line["model"])
        try:
            process, text = under_ncu(kit, until, words, model, label, line["batch"])
        except TimeUp:
            return False
        read = counters_of(text)
        state["done"][name] = dict(schedule=label, kernels=read) if read else dict(error=process.why())
        kit.say(f"  {name}: {len(read)} launches")
    return True


def counters_of(lines):
    """Returns the launches in ncu's CSV: each the kernel's name and its counters by name."""
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    launches = {}
    for row in csv.DictReader(lines[start:] if start is not None else []):
        launch = launches.setdefault(row["ID"], dict(kernel=row["Kernel Name"], counters={}))
        launch["counters"][row["Metric Name"]] = f"{row['Metric Value']} {row['Metric Unit']}".strip()
    return list(launches.values())
