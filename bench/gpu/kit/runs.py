"""What the kit's steps have in common: the record of what was done, the kit's unpacked files, processes that are read up
to a time, and the exceptions by which a step ends."""

import glob, json, os, queue, shutil, signal, subprocess, sys, tarfile, threading, time, zipfile

GRACE = 15  # seconds that a process gets beyond its time before it is killed
HANGS = 150  # seconds after which an item is taken to hang
TAIL = 40  # lines of output that are kept
TOOL_FOLDERS = ["/usr/local/cuda/bin", "/opt/nvidia/nsight-compute/*", "/usr/local/cuda/nsight-compute*",
                "/usr/local/cuda/compute-sanitizer"]


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
