"""Tests of the GPU benchmarks without a GPU: tables of stored results, random forests, schedules that must compile, and
the message and exit code without a device. test_gpu_bench.py FORESTVM"""

import argparse, json, os, py_compile, runpy, subprocess, sys, tempfile, unittest
import xml.etree.ElementTree as xml

import api, cases, report, schedules, synthetic

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(f"{HERE}/../..")
PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else f"{ROOT}/build/release/cli/forestvm"
BUILD = os.path.dirname(os.path.dirname(PROGRAM))


def result(call_us, off=0.0, **more):
    same = dict(event_us=call_us, checked=100, equal_bits=90, max_difference=off, largest=2.0)
    return dict(same, call_us=call_us, **more)


def cell(model, batch, ours, theirs, off=0.0):
    """Returns a stored result. `ours` and `theirs` are microseconds of kernels; calls take 10 us more."""
    nvforest = result(theirs + 10, off, kernel_us=theirs, layout="layered", chunk=8, version="1")
    engines = dict(forestvm=result(ours + 10, kernel_us=ours, schedule="gpu"), nvforest=nvforest)
    return dict(model=model, batch=batch, engines=engines)


class Reports(unittest.TestCase):
    def written(self, case, lines):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/{case}.jsonl", "w") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
            text = report.write(folder, case)
            if os.path.exists(f"{folder}/{case}.svg"):
                xml.parse(f"{folder}/{case}.svg")
            self.assertTrue(not lines or os.path.exists(f"{folder}/{case}.md"))
        return text

    def expect(self, text, *parts):
        for part in parts:
            self.assertIn(part, text)

    def test_ceilings(self):
        self.expect(self.written("b0", [dict(device="X", launch_us={"16": 2.5})]), "- device: X", "| 16 |", "| 2.5 |")

    def test_checks(self):
        line = dict(model="m", schedule="gpu", output="raw", on_gpu=False, difference=None)
        text = self.written("b1", [line, dict(line, difference="other answers")])
        self.expect(text, "1 of 2 checks agree (host and emulator, no GPU)", "| m | gpu | raw | other answers |")

    def test_the_interpreters_cost(self):
        def pair(batch, ours, theirs):
            yield dict(model="m", batch=batch, engine="forestvm", **result(ours))
            yield dict(model="m", batch=batch, engine="straight", stream_us=theirs, call_us=theirs)

        text = self.written("b2", [*pair(1, 5.5, 4.6), *pair(4096, 9, 8), *pair(100000, 103.5, 100)])
        self.expect(
            text,
            "| m | 1 | 5.5 | 4.6 | 0.900 | 19.6 % | yes |",
            "| m | 4096 | 9 | 8 | 1.000 | 12.5 % |  |",
            "| 3.5 % | no |",
        )

    def test_beside_nvforest(self):
        lines = [cell("m", 1, 2, 8), cell("m", 4096, 10, 10), cell("n", 4096, 1, 16), cell("n", 1, 1, 100, off=0.1)]
        lines += [dict(model="n", error="the worker ended with code 1, see above")]
        lines += [dict(model="m", left_out="rows 1", reason="too much")]
        text = self.written("b3", lines)
        self.expect(
            text,
            "- all cells: **4.00x**, least 1.00x (m, 4096 rows), 3 cells",
            "- from 4096 rows on: **4.00x** (wanted 2x: yes)",
            "- up to 512 rows: **4.00x** (wanted 2x: yes), least 4.00x (m, 1 rows), 1 cells",
            "| m | 1 | 2 | 8 | **4.00x** | 12 | 18 | 1.50x | gpu | layered, chunk 8 | 90 of 100 |",
            "| n | 1 | nvforest | 0.1 |",
            "- n: the worker ended with code 1",
            "- m, rows 1: too much",
        )

    def test_ablations_against_their_bounds(self):
        bounds = dict(issue=400.0, load=200.0, memory=1000.0, bus=1.0)
        lines = [
            dict(model="m", label="base", bounds=bounds, refused=None),
            dict(model="m", label="base", batch=1000, **result(10.0)),
            dict(model="m", label="other", batch=1000, **result(20.0, off=1.0)),
            dict(model="m", label="third", refused="too large"),
        ]
        text = self.written("b4", lines)
        self.expect(text, "| m | 1000 | base | 10 | 100 | 50 % |  |", "| other | 20 | 50 | - | wrong answers |")

    def test_a_search_counts_what_it_tried(self):
        def point(name, us):
            return dict(model="m", batch=1, points="39", point=name, compile_s=1.0, search_s=0.5, call_us=us)

        names = [f"p{i}-shared0-array" for i in range(5)]
        lines = [point(name, 10.0 + i) for i, name in enumerate(names)]
        lines += [point(name.replace("shared0", "shared1"), 9.0 - i) for i, name in enumerate(names)]
        # Counts all five points and the three fastest with shared reduction. The fastest point of all is not among
        # them.
        self.expect(self.written("b5", lines), "| m | 1 | 39 | 8 | 12.00 | 7 | p2-shared1-array |")

    def test_total_times(self):
        line = dict(model="m", label="pinned", batch=1000, bytes=8000, **result(4.0))
        self.expect(self.written("b6", [line]), "| m | 1000 | pinned | 4 | 250 | 2 |")

    def test_nothing_measured(self):
        self.assertEqual(self.written("b6", []), "b6: nothing was measured")


class Preparation(unittest.TestCase):
    def forestvm(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True)

    def test_drawn_forests_run(self):
        with tempfile.TemporaryDirectory() as folder:
            for classes in (1, 3):
                synthetic.write(f"{folder}/{classes}", 8, 10, 6, classes, rows=50)
                files = [f"{folder}/{classes}/model.json", f"{folder}/{classes}/rows.npy"]
                done = self.forestvm("run", *files, "--output", "raw")
                self.assertEqual(done.returncode, 0, done.stderr)
                lines = done.stdout.splitlines()
                self.assertIn(len(lines), (50, 51))  # with or without a header
                self.assertEqual(len(lines[-1].split(",")), classes)

    def test_they_are_the_same_everywhere(self):
        self.assertEqual(synthetic.model(4, 3, 2), synthetic.model(4, 3, 2))
        first = synthetic.model(4, 3, 2)["learner"]["gradient_booster"]["model"]["trees"][0]
        self.assertEqual(first["tree_param"]["num_nodes"], "15")

    def test_every_schedule_compiles_and_is_accounted_for(self):
        with tempfile.TemporaryDirectory() as folder:
            gpu = "layout(t0, sparse); interleave(t2)"
            tried = {**schedules.CANDIDATES, **schedules.ABLATIONS, **schedules.shapes(100, gpu)}
            for label, schedule in tried.items():
                if "\n" in schedule:
                    with open(f"{folder}/x.schedule", "w") as file:
                        file.write(schedule)
                    schedule = f"{folder}/x.schedule"
                model = f"{ROOT}/tests/data/diabetes/model.json"
                words = ["--backend", "cuda", "--schedule", schedule, "--contract", "fast", "--json"]
                done = self.forestvm("inspect", model, *words)
                self.assertEqual(done.returncode, 0, f"{label}: {done.stderr}")
                self.assertNotIn("refused", json.loads(done.stdout), label)

    def test_plans_name_models_that_can_be_had(self):
        for case in ("b2", "b3", "b4", "b5", "b6"):
            for quick in (False, True):
                plan = cases.plan(case, quick)
                for name in plan["models"]:
                    self.assertTrue(name in cases.TRAINED or name in cases.SYNTHETIC, name)

    def test_the_worker_is_python(self):
        with tempfile.TemporaryDirectory() as folder:
            py_compile.compile(f"{HERE}/worker.py", cfile=f"{folder}/worker.pyc", doraise=True)


@unittest.skipIf(api.device() is None, "there is a CUDA device")
class WithoutDevice(unittest.TestCase):
    def run_case(self, *words):
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", f"{HERE}/run", *words, "--out", folder, "--build", BUILD]
            return subprocess.run(command, capture_output=True, text=True)

    def test_cases_say_that_they_did_not_run(self):
        every = ("b0", "b2", "b3", "b4", "b5", "b6")
        done = self.run_case(*every)
        self.assertEqual(done.returncode, 3, done.stderr)
        for case in every:
            self.assertIn(f"bench/gpu/run: {case} was not run: no CUDA device", done.stderr)

    def test_b1_compares_what_it_can(self):
        done = self.run_case("b1", "--quick")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("6 of 6 checks: host and emulator agree", done.stdout)
        self.assertIn("b1's part on the GPU was not run: no CUDA device", done.stderr)

    @unittest.skipIf(os.environ.get("FORESTVM_SANITIZE"), "Python cannot load a library that was built with sanitizers")
    def test_the_worker_finds_the_library_of_gpus(self):
        """The library is found in the folders of the build, as by any program, without an environment variable."""
        built = os.path.exists(f"{BUILD}/lib/libforestvm_cuda.so")
        if not built:
            print("libforestvm_cuda.so was not built: only that the worker looks for it is tested", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            for module in ("cupy", "numpy"):  # opening a program uses none of these modules
                open(f"{folder}/{module}.py", "w").close()
            options = argparse.Namespace(build=os.path.relpath(BUILD), out=folder, zoo=folder)
            job = runpy.run_path(f"{HERE}/run")["prepared"](
                options, "b3", "f8-d2-t16", dict(gpu="gpu", other="rapids-fil")
            )
            with open(f"{folder}/job.json", "w") as file:
                json.dump(job, file)
            done = subprocess.run(
                [sys.executable, "-B", f"{HERE}/worker.py", f"{folder}/job.json"],
                env={key: os.environ[key] for key in os.environ if key != "FORESTVM_PLUGINS"} | dict(PYTHONPATH=folder),
                capture_output=True,
                text=True,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        *left_out, error = map(json.loads, done.stdout.splitlines())
        self.assertEqual([line["left_out"] for line in left_out], ["gpu", "other"])
        for line in left_out:
            self.assertIn("no CUDA device: " if built else "no CUDA backend: libforestvm_cuda.so: ", line["reason"])
        self.assertEqual(error, dict(error="none of its 2 programs can be opened on the GPU"))

    def test_a_dry_run_says_what_would_run(self):
        done = self.run_case("b3", "--dry-run", "--models", "f8-d2-t16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"would time f8-d2-t16: {len(schedules.CANDIDATES)} programs, batches", done.stdout)

    def test_wrong_words(self):
        self.assertEqual(self.run_case("b7").returncode, 2)


if __name__ == "__main__":
    unittest.main()
