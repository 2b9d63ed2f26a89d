"""Shared by the commands in this folder: the engines and their environments, an engine's process, and the options that
choose models, engines and forestvm's build."""

import json, os, select, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(f"{HERE}/../..")
HOME = os.environ.get("PEERS_HOME", os.path.expanduser("~/.cache/forestvm-peers"))
ENVIRONMENTS = dict(
    forestvm="v-main",
    onedal="v-daal",
    xgboost="v-main",
    lightgbm="v-main",
    tl2cgen="v-main",
    lleaves="v-lleaves",
    nvforest="v-nvf",
    onnxruntime="v-main",
    treelite="v-main",
    ydf="v-ydf",
    catboost="v-main",
    sklearn="v-main",
)
REST, LONGEST_REST = 0.005, 0.5  # seconds, see Worker.rest


class Worker:
    """An engine's process."""

    def __init__(self, engine, threads, python=None, script=f"{HERE}/worker.py"):
        """Starts a script that takes the engine's name and the number of threads, and answers commands as worker.py does.
        `python` is the interpreter, that of the engine's environment if it is None."""
        self.threads = threads
        environment = dict(
            os.environ,
            PEERS_HOME=HOME,
            OMP_NUM_THREADS=str(threads),
            MKL_NUM_THREADS=str(threads),
            NUMBA_NUM_THREADS=str(threads),
            TREELITE_BIND_THREADS="0",
            CUDA_VISIBLE_DEVICES="",
            PYTHONWARNINGS="ignore",
        )
        python = python or f"{HOME}/{ENVIRONMENTS[engine]}/bin/python"
        self.process = subprocess.Popen(
            [python, script, engine, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.started = self.answer(300)

    def answer(self, limit):
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.stop()
        return dict(error="its process died" if ready else f"no answer in {limit} s")

    def ask(self, command, limit=120, **arguments):
        if self.process.poll() is not None:
            return dict(error="its process is gone")
        self.process.stdin.write(json.dumps(dict(arguments, command=command)) + "\n")
        self.process.stdin.flush()
        return self.answer(limit)

    def cpu_seconds(self):
        folder, total = f"/proc/{self.process.pid}/task", 0
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/schedstat") as file:
                total += int(file.read().split()[0])
        return total * 1e-9

    def rest(self):
        """Waits until the engine's threads sleep. Threads of some engines spin for up to 50 ms after their work, which
        would disturb the next engine's turn."""
        end = time.monotonic() + LONGEST_REST
        try:
            before = self.cpu_seconds()
            while time.monotonic() < end:
                time.sleep(REST)
                after = self.cpu_seconds()
                if after - before < REST / 10:
                    return
                before = after
        except OSError:
            time.sleep(10 * REST)  # a thread ended, or this system has no such figures

    def stop(self):
        self.process.kill()
        self.process.wait()


def wrong(text):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {text}")


def common_arguments(parser):
    parser.add_argument(
        "--models", help="prepared models, separated by commas; default: all, or none where --model-folder is given"
    )
    parser.add_argument(
        "--model-folder",
        action="append",
        default=[],
        help="a folder with a model and rows*.npy, prepared first if need be; may be repeated",
    )
    parser.add_argument(
        "--peers",
        default=",".join(ENVIRONMENTS),
        help="engines, separated by commas; default: " + ",".join(ENVIRONMENTS),
    )
    parser.add_argument("--schedule", default="auto", help="forestvm's: a name or a file")
    parser.add_argument("--contract", default="trainer", help="forestvm's")
    parser.add_argument("--target", default="auto", help="forestvm's CPU target")
    parser.add_argument("--build", default=f"{ROOT}/build/release", help="forestvm's build tree")


def check_common(options):
    """Adds the paths of forestvm's program and library."""
    options.peers = list(dict.fromkeys(["forestvm", *options.peers.split(",")]))
    if unknown := [peer for peer in options.peers if peer not in ENVIRONMENTS]:
        wrong(f"--peers {unknown[0]}: expected some of {', '.join(ENVIRONMENTS)}")
    options.program = f"{options.build}/cli/forestvm"
    options.library = f"{options.build}/lib/libforestvm_runtime.so"
    for path in (options.program, options.library):
        if not os.path.exists(path):
            build = "cmake --preset release && cmake --build --preset release --target forestvm forestvm_runtime"
            wrong(f"{path} is absent: {build}")
    # A value with a slash or a dot is a file and not a schedule's name.
    if ("/" in options.schedule or "." in options.schedule) and not os.path.exists(options.schedule):
        wrong(f"{options.schedule} is absent")


def installed(peers):
    return [peer for peer in peers if os.path.exists(f"{HOME}/{ENVIRONMENTS[peer]}/bin/python")]


def models(options):
    """Returns the names of the prepared models that take part."""
    if not os.path.exists(f"{HOME}/calls.so"):
        wrong(f"{HOME} has no calls.so: run bench/peers/install first, or set PEERS_HOME")
    for folder in options.model_folder:
        if not os.path.isdir(folder):
            wrong(f"--model-folder {folder}: absent")
        subprocess.run([f"{HERE}/prepare", "--model-folder", folder])
    folders = os.listdir(f"{HOME}/models") if os.path.isdir(f"{HOME}/models") else []
    prepared = sorted(name for name in folders if os.path.exists(f"{HOME}/models/{name}/info.json"))
    extra = [os.path.basename(os.path.abspath(folder)) for folder in options.model_folder]
    names = options.models.split(",") if options.models else [] if extra else prepared
    names = list(dict.fromkeys([*names, *extra]))
    if absent := [name for name in names if name not in prepared]:
        wrong(f"{absent[0]} is not prepared; prepared are: {', '.join(prepared) or 'none, see README.md here'}")
    return names


def compile_program(options, folder, program):
    """Compiles a prepared model's source for forestvm. Returns None, or why it cannot."""
    source = json.load(open(f"{folder}/info.json"))["source"]
    command = [options.program, "compile", source, "-o", program]
    command += ["--schedule", options.schedule, "--contract", options.contract]
    done = subprocess.run(command, capture_output=True, text=True)
    return None if done.returncode == 0 else done.stderr.strip()
