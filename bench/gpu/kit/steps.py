"""The steps of the kit's plan. A step does items one by one and keeps each result in the state, so that a later call
goes on where an earlier one stopped. It returns True if nothing is left, False if the time is up. It raises Skip if it
cannot run here, and Stop if answers are wrong, which ends the plan."""

import json, subprocess, time

import timing
from runs import GRACE, HANGS, TAIL, NoDevice, Process, Skip, Stop, TimeUp

CHUNK = 60  # programs of a process that compares answers
GROUP = 12  # programs of a process under a sanitizer
FINDINGS = 9  # exit code of compute-sanitizer with findings
SANITIZED_BATCHES, SANITIZED_TURNS = [33], 2


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
    ("times", 10, timing.times),
    ("shapes", 5, timing.shapes),
    ("interpreter", 2, timing.interpreter),
    ("counters", 4, timing.counters),
    ("profiles", 3, timing.profiles),
]
