"""The steps of the kit's plan. A step does items one by one and keeps each result in the state, so that a later call
goes on where an earlier one stopped. It returns True if nothing is left, False if the time is up. It raises Skip if it
cannot run here, and Stop if answers are wrong, which ends the plan."""

import csv, glob, gzip, json, os, queue, shutil, signal, subprocess, sys, tarfile, threading, time, zipfile

import answers, report

CHUNK = 60  # programs of a process that compares answers
GROUP = 12  # programs of a process under a sanitizer
GRACE = 15  # seconds that a process gets beyond its time before it is killed
HANGS = 150  # seconds after which an item is taken to hang
FINDINGS = 9  # exit code of compute-sanitizer with findings
TAIL = 40  # lines of output that are kept
WORST = 5  # cells whose counters are read
COUNTED_CALLS = 4
COUNTED_BYTES = 1 << 28  # most bytes of rows in a call whose counters are read
SANITIZED_BATCHES, SANITIZED_TURNS = [33], 2
INTERPRETED_BATCHES, INTERPRETED_BYTES = [1, 4096, 100_000, 1 << 20], 1 << 28
SHAPED_BATCHES = [1, 16, 64, 512, 2048, 4096, 16384, 65536]
PROFILED_BATCHES = [1, 4096]
PROFILED_SECTIONS = ["SourceCounters", "WarpStateStats", "SpeedOfLight", "Occupancy", "MemoryWorkloadAnalysis"]
TOOL_FOLDERS = ["/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/cuda/nsight-compute*",
                "/usr/local/cuda/compute-sanitizer"]
METRICS = ["gpu__time_duration.sum", "smsp__inst_executed.sum",
           "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
           "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lts__t_sectors.sum",
           "smsp__issue_active.avg.pct_of_peak_sustained_active",
           "sm__warps_active.avg.pct_of_peak_sustained_active", "launch__registers_per_thread"]


class Skip(Exception):
    pass


class Stop(Exception):
    """Raised if answers are wrong, which ends the plan. `found` says what is wrong; its "item" names the program of the
    plan, if one is to blame."""

    def __init__(self, **found):
        super().__init__(found)
        self.found = found


class NoDevice(Exception):
    pass


class TimeUp(Exception):
    pass


def new_step():
    """Returns the record of a step that has not begun."""
    return dict(seconds=0.0, ended=None, skipped=None, broken=None, done={})


def replace_file(path, text):
    """Writes a file so that a machine that stops at any time leaves the old text or the new one."""
    with open(f"{path}.part", "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)


class State:
    """The record of the steps done so far, in a file that is replaced as a whole."""

    def __init__(self, path, kit):
        self.path = path
        self.data = dict(kit=kit, begun=time.time(), calls=0, steps={}, stopped=None)
        if os.path.exists(path):
            with open(path) as file:
                self.data = json.load(file)
            if self.data["kit"] != kit:
                raise ValueError(f"{path} is of another kit, made {self.data['kit']['made']}: name another --out")
        self.saved = 0.0

    def step(self, name):
        return self.data["steps"].setdefault(name, new_step())

    def save(self):
        replace_file(self.path, json.dumps(self.data))
        self.saved = time.time()

    def save_sometimes(self):
        if time.time() > self.saved + 2:
            self.save()


class Kit:
    """The kit's folder with its plan, unpacked files, and the processes that run in it."""

    def __init__(self, folder, work, say):
        self.folder, self.say = folder, say
        with open(f"{folder}/plan.json") as file:
            self.plan = json.load(file)
        self.work = f"{work}/{self.plan['id']}"  # keeps the files of different kits apart
        self.programs = {one["name"]: one for one in self.plan["programs"]}
        os.makedirs(self.work, exist_ok=True)
        self.binaries = self.unpack("binaries")
        self.libraries = f"{self.binaries}/lib"
        self.environment = dict(os.environ, FORESTVM_PLUGINS=self.libraries, PYTHONDONTWRITEBYTECODE="1",
                                PYTHONUNBUFFERED="1")
        self.needs = [f"{self.binaries}/{need}" for need in self.plan["needs"]]
        self.driver = self.plan["driver"]
        if self.plan["emulated"]:
            self.driver = f"{self.binaries}/{self.driver}"

    def choose_libraries(self):
        """Takes the packed standard libraries if the machine's are too old."""
        first = self.forestvm("--version")
        if first.returncode == 0:
            return
        self.libraries += f":{self.binaries}/lib/standard"
        self.needs = [f"{self.binaries}/{need}" for need in self.plan["standard"]] + self.needs
        second = self.forestvm("--version")
        if second.returncode != 0:
            raise NoDevice(f"forestvm does not start: {first.stderr.strip()}; with the packed libraries: "
                           f"{second.stderr.strip()}")

    def forestvm(self, *words):
        environment = dict(self.environment, LD_LIBRARY_PATH=self.libraries)
        command = [f"{self.binaries}/bin/forestvm", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    def tool(self, name):
        """Returns the path of one of NVIDIA's tools, or None. A rehearsal looks in PATH only."""
        folders = [os.environ.get("PATH", "")]
        if not self.plan["emulated"]:
            folders += [found for pattern in TOOL_FOLDERS for found in sorted(glob.glob(pattern))]
        return shutil.which(name, path=os.pathsep.join(folders))

    def unpack(self, archive):
        """Returns the folder of an archive's files."""
        to = f"{self.work}/{archive}"
        if not os.path.isdir(to):
            shutil.rmtree(f"{to}.part", ignore_errors=True)
            os.makedirs(f"{to}.part")
            with tarfile.open(f"{self.folder}/{archive}.tar.xz") as tar:
                tar.extractall(f"{to}.part")
            os.rename(f"{to}.part", to)
        return to

    def item(self, name, **more):
        """Returns a program as answers.py takes it."""
        program = self.programs[name]
        folder = self.unpack(f"models/{program['model']}")
        files = {key: f"{folder}/{program[key]}" for key in ("file", "expected")}
        item = dict(name=name, program=files["file"], rows=f"{folder}/rows.npy", expected=files["expected"])
        return dict(item, batches=self.plan["batches"], turns=4, **more)

    def job(self, file, /, **content):
        path = f"{self.work}/{file}.json"
        with open(path, "w") as file:
            json.dump(dict(content, library=f"{self.binaries}/lib/libforestvm_runtime.so",
                           needs=self.needs, driver=self.driver), file)
        return path

    def python(self, script, job, prefix=(), environment=None):
        command = [*prefix, sys.executable, f"{self.folder}/scripts/{script}", job]
        return Process(command, environment or self.environment)

    def site(self):
        """Returns an environment in which Python finds the packed wheels."""
        to = f"{self.work}/site"
        if not os.path.isdir(to) and os.path.isdir(f"{self.folder}/wheels"):
            shutil.rmtree(f"{to}.part", ignore_errors=True)
            for wheel in sorted(glob.glob(f"{self.folder}/wheels/*.whl")):
                with zipfile.ZipFile(wheel) as packed:
                    packed.extractall(f"{to}.part")
            os.rename(f"{to}.part", to)
        paths = [to, *filter(None, [self.environment.get("PYTHONPATH")])]
        return dict(self.environment, PYTHONPATH=os.pathsep.join(paths))


class Process:
    """A process whose output is read line by line, up to a time."""

    def __init__(self, command, environment):
        self.lines, self.tail = queue.Queue(), []
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", start_new_session=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def until(self, end):
        """Yields the lines. Raises TimeUp, after the process was killed, if it has not ended by then."""
        try:
            while (line := self.lines.get(timeout=max(0.01, end - time.time()))) is not None:
                self.tail = [*self.tail[1 - TAIL :], line.rstrip("\n")]
                yield line
            self.process.wait(timeout=max(1, end - time.time()))
        except (queue.Empty, subprocess.TimeoutExpired):
            raise TimeUp from None
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def said(self, end):
        """Yields the lines that are JSON objects."""
        for line in self.until(end):
            if line.startswith("{"):
                yield json.loads(line)

    def why(self):
        """Returns how the process ended, with the last lines of its output that are not results."""
        text = [line for line in self.tail if not line.startswith("{")]
        return f"the process ended with code {self.process.returncode}: " + "\n".join(text[-12:])


def device(kit, state, until):
    listed = kit.forestvm("devices").stdout.splitlines()
    if not listed or listed[0].startswith("no CUDA"):
        raise NoDevice(listed[0] if listed else "forestvm devices says nothing")
    found = dict(listed=listed[0])
    process = kit.python("answers.py", kit.job("device", kind="answers", items=[], until=until))
    for line in process.said(until):
        found.update(line["device"])
    if process.process.returncode:
        raise NoDevice(process.why())
    check_architecture(kit.plan["architecture"], found["architecture"])
    if smi := kit.tool("nvidia-smi"):
        query = "driver_version,clocks.max.sm,clocks.max.mem,power.limit,ecc.mode.current"
        words = [smi, f"--query-gpu={query}", "--format=csv,noheader", "--id=0"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            found.update(zip(query.split(","), done.stdout.strip().split(", ")))
    for name in ("compute-sanitizer", "ncu"):
        found[name] = kit.tool(name) is not None
    state["done"]["device"] = found
    kit.say(f"  {found['listed']}")
    return True


def runs_on(code, gpu):
    """Returns whether machine code for a compute capability, such as 80, runs on a GPU of another one. It does if the
    major numbers are equal and the GPU's minor number is not less."""
    return code // 10 == gpu // 10 and code <= gpu


def check_architecture(made_for, there):
    if made_for is None:
        return
    ours, theirs = (int(name[len("sm_") :]) for name in (made_for, there))
    if not runs_on(ours, theirs):
        raise NoDevice(f"the GPU is {there}, and this kit is for {made_for}: pack one with --arch {theirs}")


def ceilings(kit, state, until):
    if kit.plan["ceilings"] is None:
        raise Skip("the kit is a rehearsal and has no program for it")
    process = Process([f"{kit.binaries}/{kit.plan['ceilings']}"], kit.environment)
    text = "".join(process.until(until))
    if process.process.returncode:
        state["done"]["ceilings"] = dict(error=process.why())
    else:
        state["done"]["ceilings"] = json.loads(text)
    return True


def compared(kit, state, until, names, kind="answers", **more):
    """Compares programs, CHUNK of them in a process."""
    while left := [name for name in names if name not in state["done"]][:CHUNK]:
        if time.time() > until:
            return False
        items = [kit.item(name, **more) for name in left]
        process = kit.python("answers.py", kit.job(kind, kind=kind, items=items, until=until))
        under_way, began = None, 0.0
        try:
            for line in process.said(until + GRACE):
                if "begin" in line:
                    under_way, began = line["begin"], time.time()
                elif "item" in line:
                    under_way = None
                    keep(kit, state, line)
        except TimeUp:
            if under_way and time.time() - began > HANGS:
                raise Stop(item=under_way, error=f"it did not end within {HANGS} s") from None
            return False
        if process.process.returncode:
            raise Stop(item=under_way, error=process.why())
        done = sum(name in state["done"] for name in names)
        kit.say(f"  {done} of {len(names)} programs")
    return True


def keep(kit, state, line):
    """Keeps a program's result; raises Stop if it is wrong."""
    name = line.pop("item")
    if line["wrong"]:
        raise Stop(item=name, **line["wrong"])
    state["done"][name] = line
    kit.state.save_sometimes()


def first_answers(kit, state, until):
    return compared(kit, state, until, spread(list(kit.programs), kit.plan["first"]))


def all_answers(kit, state, until):
    early = kit.state.step("first answers")["done"]
    if all(name in early for name in kit.programs):
        raise Skip("all programs were among the first")
    return compared(kit, state, until, [name for name in kit.programs if name not in early])


def captures(kit, state, until):
    return compared(kit, state, until, spread(list(kit.programs), 16), kind="capture")


def spread(names, count):
    """Returns `count` of the names, as far apart as possible."""
    return [names[i * len(names) // count] for i in range(count)] if len(names) > count else names


def sanitized(tool):
    def step(kit, state, until):
        if kit.tool("compute-sanitizer") is None:
            raise Skip("compute-sanitizer is absent")
        names = [name for name, one in kit.programs.items() if one["model"] in kit.plan["sanitized"]]
        groups = [names[i : i + GROUP] for i in range(0, len(names), GROUP)]
        for number, group in enumerate(groups):
            if str(number) in state["done"]:
                continue
            if time.time() > until:
                return False
            # The model's batch and turns are fewer here: a sanitizer makes kernels many times slower.
            items = [dict(kit.item(name), batches=SANITIZED_BATCHES, turns=SANITIZED_TURNS) for name in group]
            try:
                line = under_sanitizer(kit, tool, items, until + GRACE)
            except TimeUp:
                return False
            state["done"][str(number)] = dict(line, programs=len(group))
            if line["wrong"]:
                raise Stop(**line["wrong"])
            kit.say(f"  {number + 1} of {len(groups)} groups of programs: {line['result']}")
        return True

    return step


def under_sanitizer(kit, tool, items, end):
    """Runs programs under compute-sanitizer. Returns the result, what is wrong, and the end of the output."""
    prefix = [kit.tool("compute-sanitizer"), "--tool", tool, "--error-exitcode", str(FINDINGS)]
    prefix += ["--target-processes", "all"]
    process = kit.python("answers.py", kit.job(tool, kind="answers", items=items, until=end), prefix)
    wrong, output = None, []
    for line in process.until(end):
        if line.startswith("{"):
            said = json.loads(line)
            if "begin" in said:
                output.append(f"program: {said['begin']}")
            elif said.get("wrong"):
                wrong = dict(said["wrong"], item=said["item"])
        else:
            output.append(line.rstrip("\n"))
    code = process.process.returncode
    result = "passed" if code == 0 else "findings" if code == FINDINGS else f"ended with code {code}"
    return dict(result=result, wrong=wrong, output=output[-TAIL:] if code else [])


def check_memory(kit, found, end):
    """Runs memcheck on the case that stopped the plan. Returns memcheck's findings as text."""
    if not found.get("item"):
        return "not run: no single program is to blame"
    if kit.tool("compute-sanitizer") is None:
        return "not run: compute-sanitizer is absent"
    batch = [found["batch"]] if "batch" in found else kit.plan["batches"]
    try:
        line = under_sanitizer(kit, "memcheck", [dict(kit.item(found["item"]), batches=batch)], end)
    except TimeUp:
        return None
    again = "the answers are wrong again" if line["wrong"] else "the answers are right under memcheck"
    return "\n".join([f"{line['result']}; {again}", *line["output"]])


def modules(kit, environment, names):
    """Returns the names of the Python modules that are absent."""
    code = f"import importlib.util as i; print(*[n for n in {names!r} if i.find_spec(n) is None])"
    words = [sys.executable, "-c", code]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60).stdout.split()


def times(kit, state, until):
    if kit.plan["emulated"]:
        raise Skip("the kit is a rehearsal: the emulator's times say nothing")
    environment = kit.site()
    if absent := modules(kit, environment, ["numpy", "cupy", "torch"]):
        raise Skip(f"Python has no {', '.join(absent)}")
    beside = not (absent := modules(kit, environment, ["nvforest", "treelite", "rmm"]))
    if not beside:
        kit.say(f"  without nvForest: Python has no {', '.join(absent)}")
    for model in kit.plan["timed"]:
        name = model["name"]
        left = [batch for batch in kit.plan["timed_batches"] if cell(name, batch) not in state["done"]]
        if not left:
            continue
        if time.time() > until:
            return False
        folder = kit.unpack(f"models/{name}")
        files = {key: f"{folder}/{model[key]}" for key in ("source", "rows", "expected")}
        programs = {label: f"{folder}/{file}" for label, file in model["programs"].items()}
        job = dict(case="b3", name=name, **files, programs=programs, outputs=model["outputs"], batches=left,
                   beside=beside, until=until)
        process, began = kit.python("worker.py", kit.job("times", **job), environment=environment), time.time()
        try:
            for line in process.said(until + GRACE):
                if "batch" in line:
                    began = time.time()
                    left.remove(line["batch"])
                    state["done"][cell(name, line["batch"])] = dict(line, model=name)
                    kit.say(f"  {name}, {line['batch']} rows: {told(line['engines'])}")
                    stop_if_wrong(cell(name, line["batch"]), line["engines"]["forestvm"])
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
    return all(cell(model["name"], batch) in state["done"]
               for model in kit.plan["timed"] for batch in kit.plan["timed_batches"])


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


def shapes(kit, state, until):
    """Times the kernels of every form of a block, from which the schedule "gpu" chooses by a model of costs."""
    if kit.plan["emulated"]:
        raise Skip("the kit is a rehearsal: the emulator's times say nothing")
    environment = kit.site()
    if absent := modules(kit, environment, ["numpy", "cupy", "torch"]):
        raise Skip(f"Python has no {', '.join(absent)}")
    for model in kit.plan["timed"]:
        name = model["name"]
        left = [batch for batch in SHAPED_BATCHES if cell(name, batch) not in state["done"]]
        if not left:
            continue
        if time.time() > until:
            return False
        folder = kit.unpack(f"models/{name}")
        programs = {label: f"{folder}/{file}" for label, file in model["shapes"].items()}
        job = dict(case="shapes", name=name, rows=f"{folder}/rows.npy", programs=programs, batches=left, until=until)
        process = kit.python("worker.py", kit.job("shapes", **job), environment=environment)
        try:
            for line in process.said(until + GRACE):
                if "batch" in line:
                    left.remove(line["batch"])
                    state["done"][cell(name, line["batch"])] = dict(line, model=name)
        except TimeUp:
            return False
        if left and (process.process.returncode or time.time() < until):
            why = process.why()
            for batch in left:
                state["done"][cell(name, batch)] = dict(model=name, error=f"{batch} rows: {why}")
        kit.say(f"  {name}")
    return all(cell(model["name"], batch) in state["done"]
               for model in kit.plan["timed"] for batch in SHAPED_BATCHES)


def interpreter(kit, state, until):
    """Times programs of the schedule "gpu", and kernels that walk them without an interpreter."""
    if kit.plan["straight"] is None:
        raise Skip("the kit is a rehearsal and has no program for it")
    environment = kit.site()
    if absent := modules(kit, environment, ["numpy", "cupy"]):
        raise Skip(f"Python has no {', '.join(absent)}")
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


def profiles(kit, state, until):
    """Keeps where warps of the schedule "gpu" wait, by machine instruction, in files beside the report."""
    if kit.plan["emulated"]:
        raise Skip("the kit is a rehearsal: the emulator has no counters")
    ncu = kit.tool("ncu")
    if ncu is None:
        raise Skip("ncu is absent")
    folder = f"{os.path.dirname(kit.state.path)}/profiles"
    os.makedirs(folder, exist_ok=True)
    for model in kit.plan["timed"]:
        for batch in PROFILED_BATCHES:
            name = cell(model["name"], batch)
            if name in state["done"] or "gpu" not in model["programs"]:
                continue
            if time.time() > until:
                return False
            files = kit.unpack(f"models/{model['name']}")
            item = dict(name=name, program=f"{files}/{model['programs']['gpu']}", rows=f"{files}/rows.npy",
                        expected=f"{files}/{model['expected']}", batches=[batch], turns=COUNTED_CALLS,
                        most_bytes=COUNTED_BYTES)
            report_of_ncu = f"{kit.work}/{model['name']}-{batch}"
            # Caches keep what the calls before left there, as they do for users.
            prefix = [ncu, "--clock-control", "none", "--cache-control", "none", "--kernel-name",
                      "regex:forestvm_phase", "--launch-skip", "2", "--launch-count", "1", "--sampling-interval", "0",
                      "-f", "-o", report_of_ncu]
            prefix += [word for section in PROFILED_SECTIONS for word in ("--section", section)]
            process = kit.python("answers.py", kit.job("profiles", kind="calls", items=[item], until=until), prefix)
            try:
                list(process.until(until + GRACE))
            except TimeUp:
                return False
            state["done"][name] = pages_of(ncu, report_of_ncu, folder) or dict(error=process.why())
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
    if kit.plan["emulated"]:
        raise Skip("the kit is a rehearsal: the emulator has no counters")
    if kit.tool("ncu") is None:
        raise Skip("ncu is absent")
    worst = worst_cells(kit, kit.state.step("times")["done"])
    if not worst:
        raise Skip("no kernel was timed")
    for line in worst:
        name, label = cell(line["model"], line["batch"]), line["engines"]["forestvm"]["schedule"]
        if name in state["done"]:
            continue
        if time.time() > until:
            return False
        model = next(one for one in kit.plan["timed"] if one["name"] == line["model"])
        folder = kit.unpack(f"models/{line['model']}")
        item = dict(name=name, program=f"{folder}/{model['programs'][label]}", rows=f"{folder}/rows.npy",
                    expected=f"{folder}/{model['expected']}", batches=[line["batch"]], turns=COUNTED_CALLS,
                    most_bytes=COUNTED_BYTES)
        prefix = [kit.tool("ncu"), "--csv", "--clock-control", "none", "--kernel-name", "regex:forestvm_phase",
                  "--launch-skip", "1", "--launch-count", "3", "--metrics", ",".join(METRICS)]
        process = kit.python("answers.py", kit.job("counters", kind="calls", items=[item], until=until), prefix)
        try:
            text = list(process.until(until + GRACE))
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


# Name, minutes that it may take of all calls together, function. 45 minutes in all.
STEPS = [
    ("device", 1, device),
    ("ceilings", 1, ceilings),
    ("first answers", 2, first_answers),
    ("answers", 6, all_answers),
    ("captures", 1, captures),
    ("memcheck", 3, sanitized("memcheck")),
    ("racecheck", 3, sanitized("racecheck")),
    ("synccheck", 2, sanitized("synccheck")),
    ("initcheck", 2, sanitized("initcheck")),
    ("times", 10, times),
    ("shapes", 5, shapes),
    ("interpreter", 2, interpreter),
    ("counters", 4, counters),
    ("profiles", 3, profiles),
]
