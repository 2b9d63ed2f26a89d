"""Rehearses the kit: packs a few programs with the emulator in the GPU's place, moves the folder, and runs its plan
there with an empty environment. test_gpu_kit.py BUILD"""

import gzip, io, json, lzma, os, runpy, shutil, stat, subprocess, sys, tarfile, tempfile, time, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(f"{HERE}/../..")
BUILD = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else f"{ROOT}/build/release"
sys.path.insert(1, f"{HERE}/kit")

import kernel_times, report, runs, steps, summary, timing  # noqa: E402

MODEL = "diabetes"
SCHEDULES = "gpu;rapids-fil;tahoe-shared-partial-forest"
ANSWERS = 4  # "gpu" under both contracts; other schedules, which change the order of trees, under one
TOOLS = {"memcheck", "racecheck", "synccheck", "initcheck"}


def pack(*words):
    return subprocess.run([sys.executable, "-B", f"{HERE}/pack", *words], capture_output=True, text=True)


def go(kit, *words, path=None):
    """Runs the plan; nothing of this process's environment reaches it."""
    environment = {"PATH": path} if path else {}
    command = [sys.executable, f"{kit}/go", *words]
    return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)


def read(path):
    with open(path) as file:
        return json.load(file)


def edit_archive(path, name, change):
    """Replaces a file of a model's archive by change(its bytes)."""
    with tarfile.open(path) as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar.getmembers()}
    files[name] = change(files[name])
    with lzma.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for one, data in files.items():
            entry = tarfile.TarInfo(one)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def write_tool(folder, text):
    """Writes a program that stands in for compute-sanitizer. The command to run begins at its seventh word."""
    with open(f"{folder}/compute-sanitizer", "w") as file:
        file.write(f'#!/bin/sh\ntool=$2\necho "$tool" >>{folder}/log\nshift 6\n{text}\n')
    os.chmod(f"{folder}/compute-sanitizer", stat.S_IRWXU)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name


class Rehearsal(Folder):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        words = ["--emulated", "--build", BUILD, "--models", MODEL, "--schedules", SCHEDULES]
        cls.packed = pack(*words, "-o", f"{cls.place.name}/made")
        if cls.packed.returncode:
            raise AssertionError(cls.packed.stderr)
        cls.kit = f"{cls.place.name}/moved"
        os.rename(f"{cls.place.name}/made", cls.kit)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def go(self, *words, kit=None, code=0, **more):
        """Runs the plan in a new state."""
        out, work = f"{self.folder}/out", f"{self.folder if kit else self.place.name}/work"
        done = go(kit or self.kit, "--out", out, "--work", work, *words, **more)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return read(f"{out}/report.json"), done.stdout

    def results(self, said):
        return {line["step"]: line["result"] for line in said["steps"]}

    def edited(self, change):
        """Returns a copy of the kit in which one byte of the expected scores is changed."""
        kit = f"{self.folder}/edited"
        shutil.copytree(self.kit, kit, ignore=shutil.ignore_patterns("work", "results"))
        edit_archive(f"{kit}/models/{MODEL}.tar.xz", "reproducible.npy", change)
        return kit

    def test_the_whole_plan(self):
        said, _ = self.go()
        skipped = ["ceilings", "answers", *TOOLS, "times", "shapes", "interpreter", "counters", "profiles"]
        expected = dict.fromkeys(skipped, "skipped")
        expected.update(dict.fromkeys(["device", "first answers", "captures"], "passed"))
        self.assertEqual(self.results(said), expected)
        reasons = {line["step"]: line["reason"] for line in said["steps"]}
        self.assertEqual(reasons["memcheck"], "compute-sanitizer is absent")
        self.assertEqual(said["device"]["device"], "emulator of a GPU")
        answers = said["results"]["first answers"]
        self.assertEqual(len(answers), ANSWERS)
        rows = read(f"{self.folder}/out/state.json")["steps"]["first answers"]["done"]
        for name, line in answers.items():
            self.assertEqual(line["refused"], {}, name)
            # There are two places of rows with four calls each, and 133 rows, which are repeated for the largest batch.
            self.assertEqual(line["compared"], 8 * (1 + 31 + 33 + 257), name)
        self.assertEqual(rows, answers)
        with open(f"{self.folder}/out/report.md") as file:
            text = file.read()
        self.assertIn("**A rehearsal: the emulator took the GPU's place, and no GPU was used.**", text)
        self.assertIn(f"{ANSWERS} programs in all ways", text)

    def test_it_goes_on_where_it_stopped(self):
        self.go("--minutes", "0.01", code=4)
        self.go()
        path = f"{self.folder}/out/state.json"
        state = read(path)
        del state["steps"]["captures"]
        answers = state["steps"]["first answers"]
        answers["ended"] = None
        kept, *others = answers["done"]
        answers["done"][kept]["kept"] = True
        for name in others:
            del answers["done"][name]
        os.makedirs(f"{self.folder}/earlier")
        with open(f"{self.folder}/earlier/state.json", "w") as file:
            json.dump(state, file)
        shutil.rmtree(f"{self.folder}/out")
        said, _ = self.go("--resume", f"{self.folder}/earlier")
        self.assertEqual(said["calls"], 3)
        self.assertEqual(self.results(said)["captures"], "passed")
        found = said["results"]["first answers"]
        self.assertEqual([name for name in found if "kept" in found[name]], [kept])
        self.assertEqual(set(found), {kept, *others})

    def test_a_state_of_another_kit(self):
        os.makedirs(f"{self.folder}/out")
        with open(f"{self.folder}/out/state.json", "w") as file:
            json.dump(dict(kit=dict(made="1970")), file)
        done = go(self.kit, "--out", f"{self.folder}/out", "--work", f"{self.folder}/work")
        self.assertEqual(done.returncode, 2)
        self.assertIn("is of another kit, made 1970", done.stderr)

    def test_a_wrong_bit_stops_the_plan(self):
        def flip(data):
            return data[:-1] + bytes([data[-1] ^ 1])

        kit = self.edited(flip)
        tools = f"{self.folder}/tools"
        os.makedirs(tools)
        write_tool(tools, 'exec "$@"')
        said, text = self.go(kit=kit, path=tools, code=1)
        self.assertEqual(self.results(said)["first answers"], "failed")
        self.assertEqual(self.results(said)["captures"], "not run")
        stopped = said["stopped"]
        self.assertEqual(stopped["item"], f"{MODEL}: gpu, reproducible")
        self.assertEqual((stopped["differing"], stopped["row"], stopped["output"]), (1, 132, 0))
        difference = int(stopped["got"], 16) ^ int(stopped["expected"], 16)
        self.assertEqual(difference, 1 << 24)
        # Memcheck ran on this case, and on nothing else.
        self.assertIn("the answers are wrong again", stopped["memcheck"])
        with open(f"{tools}/log") as file:
            self.assertEqual(file.read(), "memcheck\n")
        self.assertIn("stopped in step first answers", text)
        self.go(kit=kit, code=1)  # another call does not change the outcome
        edit_archive(f"{kit}/models/{MODEL}.tar.xz", "reproducible.npy", flip)
        shutil.rmtree(f"{self.folder}/work")
        said, _ = self.go("--again", kit=kit)
        self.assertIsNone(said["stopped"])

    def test_a_crash_stops_the_plan(self):
        kit = self.edited(lambda data: data)
        with open(f"{kit}/scripts/answers.py") as file:
            text = file.read()
        with open(f"{kit}/scripts/answers.py", "w") as file:
            file.write(text.replace('say(begin=item["name"])', 'say(begin=item["name"]), __import__("os").abort()'))
        said, _ = self.go(kit=kit, code=1)
        self.assertEqual(said["stopped"]["item"], f"{MODEL}: gpu, reproducible")
        self.assertIn("the process ended with code -6", said["stopped"]["error"])
        self.assertEqual(said["stopped"]["memcheck"], "not run: compute-sanitizer is absent")

    def test_sanitizers(self):
        write_tool(self.folder, '"$@"\n[ "$tool" != initcheck ] || { echo "========= Uninitialized"; exit 9; }')
        said, _ = self.go(path=self.folder, code=1)
        results = self.results(said)
        self.assertEqual({step for step, result in results.items() if result == "failed"}, {"initcheck"})
        self.assertLess(TOOLS - {"initcheck"}, {step for step, result in results.items() if result == "passed"})
        self.assertIn("========= Uninitialized", said["results"]["initcheck"]["0"]["output"])
        with open(f"{self.folder}/log") as file:
            self.assertEqual(set(file.read().split()), TOOLS)

    def test_the_folder_has_no_path_of_this_machine(self):
        ours = [ROOT, BUILD, os.path.dirname(self.place.name), os.path.expanduser("~") + "/"]
        files = ["go", "plan.json", *(f"scripts/{name}" for name in os.listdir(f"{self.kit}/scripts"))]
        for name in files:
            with open(f"{self.kit}/{name}") as file:
                text = file.read()
            for path in ours:
                self.assertNotIn(path, text, name)
        plan = read(f"{self.kit}/plan.json")
        with tarfile.open(f"{self.kit}/binaries.tar.xz") as tar:
            self.assertLess({plan["driver"], *plan["needs"], *plan["standard"]}, set(tar.getnames()))

    def test_what_was_packed_is_said(self):
        self.assertIn(f"{ANSWERS} programs of 1 models to compare", self.packed.stdout)
        self.assertRegex(self.packed.stdout, r"made: \d+\.\d MB\n$")


class Packing(Folder):
    def refused(self, *words):
        done = pack("-o", f"{self.folder}/kit", "--models", MODEL, *words)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertFalse(os.path.exists(f"{self.folder}/kit"))
        self.assertFalse(os.path.exists(f"{self.folder}/kit.part"))
        return done.stderr

    def test_a_build_without_cuda(self):
        for path in ("cli/forestvm", "lib/libforestvm_runtime.so"):
            os.makedirs(os.path.dirname(f"{self.folder}/build/{path}"))
            os.symlink(f"{BUILD}/{path}", f"{self.folder}/build/{path}")
        said = self.refused("--arch", "90", "--build", f"{self.folder}/build")
        self.assertIn("libforestvm_cuda.so is absent: no CUDA compiler was found, or FORESTVM_CUDA is off", said)
        self.assertIn("-DFORESTVM_CUDA_ARCHITECTURES=90 && cmake --build", said)
        self.assertIn("--target bench_gpu", said)

    def test_too_large(self):
        said = self.refused("--emulated", "--build", BUILD, "--schedules", "gpu", "--most", "1")
        self.assertIn("MB, which is more than 1 (the largest file is binaries.tar.xz)", said)

    def test_wrong_words(self):
        self.assertIn("no-such: not found", pack("--emulated", "--build", BUILD, "--models", "no-such", "-o",
                                                 f"{self.folder}/kit").stderr)
        os.makedirs(f"{self.folder}/wheels")
        self.assertIn("no wheel of nvForest", self.refused("--emulated", "--build", BUILD, "--schedules", "gpu",
                                                           "--wheels", f"{self.folder}/wheels"))

    def test_architectures_of_a_file(self):
        fatbin = runpy.run_path(f"{HERE}/machine_code.py")["gpus"]
        with open(f"{self.folder}/x", "wb") as file:
            code = b"".join(
                kind.to_bytes(2, "little") + bytes(2) + (64).to_bytes(4, "little") + (8).to_bytes(8, "little")
                + bytes(12) + gpu.to_bytes(4, "little") + bytes(32 + 8)
                for kind, gpu in ((2, 80), (1, 75), (2, 90))
            )
            head = 0xBA55ED50.to_bytes(4, "little") + b"\x01\0\x10\0" + len(code).to_bytes(8, "little")
            file.write(b"before" + head + code + b"after")
        self.assertEqual(fatbin(f"{self.folder}/x"), {80, 90})


class Reading(unittest.TestCase):
    """Reads stored output of tools that need a GPU to make it."""

    def test_kernels_of_a_trace(self):
        kernel = dict(cat="kernel", name="walk", dur=2.5)
        trace = dict(traceEvents=[kernel, dict(cat="gpu_memcpy", dur=9), dict(kernel, dur=1.5), dict(ph="M")])
        self.assertEqual(kernel_times.of_trace(trace, 2), 2.0)
        self.assertIsNone(kernel_times.of_trace(trace, 4))
        self.assertIsNone(kernel_times.of_trace(dict(traceEvents=[]), 1))

    def test_counters(self):
        head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
        rows = ['"0","phase","a","inst","1,024"\n', '"0","phase","b","%","50.1"\n', '"1","phase","a","inst","2"\n']
        first, second = timing.counters_of(["==PROF== Connected\n", head, *rows])
        self.assertEqual(first, dict(kernel="phase", counters=dict(a="1,024 inst", b="50.1 %")))
        self.assertEqual(second, dict(kernel="phase", counters=dict(a="2 inst")))
        self.assertEqual(timing.counters_of(["==ERROR== no permission\n"]), [])

    def test_a_worker_that_ends_early(self):
        lines = [dict(left_out="b", reason="too large"), dict(batch=1, kernels={"a": 2.0})]
        code = f"import json; [print(json.dumps(line), flush=True) for line in {lines!r}]; raise SystemExit('no memory')"

        class Kit:
            plan = dict(timed=[dict(name="m")])
            state = type("State", (), dict(save_sometimes=lambda self: None))()
            unpack = job = staticmethod(lambda *words, **more: "/folder")
            python = staticmethod(lambda *words, **more: runs.Process([sys.executable, "-c", code], None))

        told, state = [], runs.new_step()
        job, end = lambda model, folder: dict(case="x", programs={}), time.time() + 60
        ended = timing.timed(Kit, state, end, None, [1, 16, 64], job, lambda name, line: told.append(name))
        self.assertTrue(ended)
        self.assertEqual(told, ["m, 1 rows"])
        self.assertEqual(state["done"]["m, 1 rows"]["kernels"], {"a": 2.0})
        self.assertIn("no memory", state["done"]["m, 16 rows"]["error"])
        self.assertEqual(state["done"]["m, 64 rows"]["error"], "64 rows: given up")
        self.assertIn(dict(left_out="b", reason="too large", model="m"), state["done"].values())

    def test_shapes(self):
        kernels = {f"{n} x 1": float(n) for n in (16, 8, 1, 4, 2, 32)} | {"64 x 1": None}
        done = dict(a=dict(model="m", batch=7, kernels=kernels), b=dict(model="m", error="8 rows: no memory"))
        text = summary.details("shapes", dict(runs.new_step(), done=done))
        self.assertIn("| m | 7 | 1 x 1: 1, 2 x 1: 2, 4 x 1: 4, 8 x 1: 8, 16 x 1: 16 |", text)
        self.assertIn("- m: 8 rows: no memory", text)

    def test_the_interpreter_and_profiles(self):
        same = dict(model="m", batch=4096)
        lines = [dict(same, engine="forestvm", event_us=11.0), dict(same, engine="straight", stream_us=10.0, call_us=12.0)]
        state = dict(runs.new_step(), done=dict(m=dict(lines=lines)))
        self.assertIn("| m | 4096 | 11 | 10 | 1.000 | 10.0 % |", summary.details("interpreter", state))
        self.assertFalse(summary.has_failed("interpreter", state, None))
        lines.append(dict(model="m", error="no memory"))
        self.assertTrue(summary.has_failed("interpreter", state, None))
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(timing.pages_of("false", f"{folder}/absent", folder))
            with open(f"{folder}/m-1.ncu-rep", "w"):
                pass
            found = timing.pages_of("echo", f"{folder}/m-1", folder)
            self.assertEqual(found, dict(files=["m-1.source.csv.gz", "m-1.details.csv.gz"]))
            with gzip.open(f"{folder}/m-1.source.csv.gz", "rt") as file:
                self.assertIn("--page source", file.read())
        self.assertIn("| m, 1 rows | a.csv.gz |", summary.details_of_profiles({"m, 1 rows": dict(files=["a.csv.gz"])}))

    def test_architectures(self):
        for made_for, there in ((None, "sm_75"), ("sm_90", "sm_90"), ("sm_80", "sm_89")):
            steps.check_architecture(made_for, there)
        for made_for, there in (("sm_90", "sm_100"), ("sm_89", "sm_80"), ("sm_80", "sm_75")):
            with self.assertRaisesRegex(runs.NoDevice, f"the GPU is {there}, and this kit is for {made_for}"):
                steps.check_architecture(made_for, there)

    def test_worst_cells_and_tables(self):
        def line(model, batch, ours, theirs=None):
            same = dict(call_us=20.0, checked=10, equal_bits=9, max_difference=0.0, largest=1.0)
            engines = dict(forestvm=dict(same, kernel_us=ours, schedule="gpu"))
            if theirs:
                engines["nvforest"] = dict(same, kernel_us=theirs, layout="layered", chunk=4, version="1")
            return dict(model=model, batch=batch, engines=engines, kernels={"gpu": ours, "rapids-fil": None})

        class Plan:
            plan = dict(timed=[dict(name="m", trees=10), dict(name="n", trees=100)])

        beside = dict(a=line("m", 1, 4.0, 8.0), b=line("m", 16, 9.0, 3.0), c=dict(model="m", error="no memory"))
        self.assertEqual([one["batch"] for one in timing.worst_cells(Plan, beside)], [16, 1])
        text = summary.details_of_times(beside)
        for part in ("| m | 16 | 9 | 3 | **0.33x** | 20 | 20 | 1.00x | gpu | layered, chunk 4 |", "- m: no memory",
                     "| m | 1 | rapids-fil | - |"):
            self.assertIn(part, text)
        alone = dict(a=line("m", 10, 4.0), b=line("n", 10, 8.0))
        self.assertEqual([one["model"] for one in timing.worst_cells(Plan, alone)], ["m", "n"])
        self.assertIn("| m | 10 | 4 | - | **-** |", summary.details_of_times(alone))
        self.assertEqual(report.ratios(report.cells_of(list(alone.values()))), {})


if __name__ == "__main__":
    unittest.main()
