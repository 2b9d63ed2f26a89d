"""Runs one engine in a process of its own, for `run`. Commands are lines of JSON on standard input, answers are lines
of JSON on standard output. Commands: load (a model of `prepare`), rows (one of its sets), check and time (a batch
size); and for `memory` cost (of a model and its first batch).

An engine is a class below, named after it. load() reads the model; then either call(argument) predicts through Python,
or `entry` is a C function and arguments(rows) returns its arguments (see calls.c), so that times do not include
Python's. An engine that cannot take a model raises Skip."""

import ctypes, gc, json, os, statistics, sys, time, warnings
import importlib.metadata as metadata

import numpy as np

from answering import Skip, serve

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
import library

HOME = os.environ["PEERS_HOME"]
MOST_ROWS = 16384
MOST_SETS = 4096  # different batches in a cell
SAMPLE = 1e-3  # seconds: a sample is the mean over about this time of calls, or one longer call
SLOW_CALL = 0.2  # seconds: a slower call is not repeated without need
now, cpu_now = time.perf_counter, time.process_time


def address(array):
    return array.ctypes.data


def function(f):
    return ctypes.cast(f, ctypes.c_void_p).value


class Engine:
    scores = (
        "raw"  # what it answers: the trainer's raw scores, their softmax, or its own (None: nothing to compare with)
    )
    entry = None

    def __init__(self, folder, info, threads, options):
        self.folder, self.info, self.threads, self.options = folder, info, threads, options
        self.K, self.features = info["K"], info["nf"]
        self.out = np.zeros(MOST_ROWS * self.K, np.float32)
        self.keep = []  # keeps the objects to which the arguments point
        self.load()

    def file(self, name):
        path = f"{self.folder}/{name}"
        if not os.path.exists(path):
            raise Skip(f"{name} is absent")
        return path

    def argument(self, rows):
        return rows

    def answer(self, result, count):
        return result

    def c_answer(self, count):
        return self.out[: count * self.K]

    def close(self):
        pass


class forestvm(Engine):
    """through the C ABI, include/forestvm/forestvm.h"""

    def load(self):
        runtime = library.Library(self.options["library"])
        self.forest = library.Forest(runtime, self.options["program"], self.threads, self.options["target"])
        self.version = self.forest.version()
        self.entry = function(runtime.functions.fvm_predict_f32)

    def arguments(self, rows):
        output = library.OUTPUTS["value" if self.info.get("output") == "value" else "raw"]
        return self.forest.context.value, address(rows), len(rows), self.features, output, address(self.out), len(self.out)

    def close(self):
        self.forest.close()


class xgboost(Engine):
    """XGBoosterPredictFromDense"""

    def load(self):
        import xgboost as module, xgboost.core as core

        self.version = module.__version__
        self.booster = module.Booster(model_file=self.file("model.ubj"))
        self.booster.set_param({"nthread": self.threads})
        self.config = json.dumps(
            dict(type=1, training=False, iteration_begin=0, iteration_end=0, strict_shape=False, missing=float("nan"))
        ).encode()
        self.shape, self.dimensions, self.result = (
            ctypes.c_void_p(),
            ctypes.c_uint64(),
            ctypes.POINTER(ctypes.c_float)(),
        )
        self.entry = function(core._LIB.XGBoosterPredictFromDense)

    def arguments(self, rows):
        array = json.dumps(
            dict(data=[address(rows), True], shape=list(rows.shape), strides=None, typestr="<f4", version=3)
        ).encode()
        self.keep.append(array)

        def pointer(text):
            return ctypes.cast(ctypes.c_char_p(text), ctypes.c_void_p).value

        return (
            self.booster.handle.value,
            pointer(array),
            pointer(self.config),
            0,
            ctypes.addressof(self.shape),
            ctypes.addressof(self.dimensions),
            ctypes.addressof(self.result),
        )

    def c_answer(self, count):
        return np.ctypeslib.as_array(self.result, (count * self.K,))


class lightgbm(Engine):
    """LGBM_BoosterPredictForMat, and for one row LGBM_BoosterPredictForMatSingleRowFast"""

    def load(self):
        import lightgbm as module
        from lightgbm.basic import _LIB

        self.version, self.library = module.__version__, _LIB
        self.booster = module.Booster(model_file=self.file("lgb.txt"))
        self.out, self.length, self.parameters = (
            np.zeros(MOST_ROWS * self.K),
            ctypes.c_int64(),
            f"num_threads={self.threads}".encode(),
        )
        self.handle = self.booster._handle
        self.fast = ctypes.c_void_p()
        _LIB.LGBM_BoosterPredictForMatSingleRowFastInit(
            self.handle, 1, 0, -1, 0, ctypes.c_int32(self.features), self.parameters, ctypes.byref(self.fast)
        )
        self.entry = function(_LIB.LGBM_BoosterPredictForMat)

    def arguments(self, rows):
        length, single = ctypes.addressof(self.length), len(rows) == 1
        self.entry = function(
            self.library.LGBM_BoosterPredictForMatSingleRowFast if single else self.library.LGBM_BoosterPredictForMat
        )
        if single:
            return self.fast.value, address(rows), length, address(self.out)
        parameters = ctypes.cast(ctypes.c_char_p(self.parameters), ctypes.c_void_p).value
        return (
            self.handle.value,
            address(rows),
            0,
            len(rows),
            self.features,
            1,
            1,
            0,
            -1 & (2**64 - 1),
            parameters,
            length,
            address(self.out),
        )


class treelite(Engine):
    """GTIL: TreeliteGTILPredict"""

    def load(self):
        import treelite as module
        from treelite.core import _LIB
        from treelite.gtil.gtil import GTILConfig

        self.version = module.__version__
        self.model = module.Model.deserialize(self.file("model.tl"))
        self.config = GTILConfig(nthread=self.threads, predict_type="raw")
        self.type = b"float32" if self.info["trainer"] == "xgboost" else b"float64"
        if self.type == b"float64":
            self.out = np.zeros(MOST_ROWS * self.K)
        self.entry = function(_LIB.TreeliteGTILPredict)

    def arguments(self, rows):
        if self.type == b"float64":
            rows = rows.astype(np.float64)
        self.keep.append(rows)
        handle = lambda x: getattr(x, "handle", None) or x._handle
        text = ctypes.cast(ctypes.c_char_p(self.type), ctypes.c_void_p).value
        return handle(self.model).value, address(rows), text, len(rows), address(self.out), handle(self.config).value


class tl2cgen(Engine):
    """the compiled C, driven by the loop over rows in `prepare`"""

    version = "1.0.0"

    def load(self):
        self.entry = function(ctypes.CDLL(self.file("tl2cgen.so")).raw_predict)

    def arguments(self, rows):
        return address(rows), len(rows), self.features, self.K, self.threads, address(self.out)


class lleaves(Engine):
    """one thread: the compiled function itself; more: lleaves' own predict. Both get float64 rows, made beforehand"""

    def load(self):
        import lleaves as module

        self.version = metadata.version("lleaves")
        self.model = module.Model(model_file=self.file("lgb.txt"))
        self.model.compile(cache=self.file("lleaves.bin"), raw_score=True)
        self.out = np.zeros(MOST_ROWS * self.K)
        if self.threads == 1:
            self.entry = function(self.model._c_entry_func)

    def arguments(self, rows):
        doubles = rows.astype(np.float64)
        self.keep.append(doubles)
        return address(doubles), address(self.out), 0, len(rows)

    def argument(self, rows):
        return rows.astype(np.float64)

    def call(self, rows):
        return self.model.predict(rows, n_jobs=self.threads)


class onnxruntime(Engine):
    def load(self):
        import onnxruntime as module

        self.version = module.__version__
        options = module.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        session = module.InferenceSession(self.file("model.onnx"), options, providers=["CPUExecutionProvider"])
        # A classifier's scores come after its labels.
        self.call = lambda rows: session.run(None, {"X": rows})[-1]


class onedal(Engine):
    """daal4py"""

    def load(self):
        import daal4py, daal4py.mb

        self.version = metadata.version("scikit-learn-intelex")
        daal4py.daalinit(self.threads)
        if self.info["trainer"] == "lightgbm":
            import lightgbm

            booster = lightgbm.Booster(model_file=self.file("lgb.txt"))
        else:
            import xgboost

            booster = xgboost.Booster(model_file=self.file("model.ubj"))
        model = daal4py.mb.convert_model(booster)
        self.call = model.predict if self.K == 1 else model.predict_proba
        if self.K > 1:
            self.scores = "softmax"


class nvforest(Engine):
    """on the CPU"""

    def load(self):
        import nvforest as module

        self.version = module.__version__
        model = module.load_model(self.file("model.tl"), device="cpu", model_type="treelite_checkpoint")
        self.call = model.predict if self.K == 1 else model.predict_proba


class ydf(Engine):
    def load(self):
        import ydf as module

        import convert

        self.version = module.__version__
        path = f"{self.folder}/ydf"
        if not os.path.exists(path):
            if self.K > 1 or self.info["leaves"] > 60000 or self.features > 200:
                raise Skip("one output, at most 60,000 leaves and 200 features")
            trees = json.load(open(self.file("model.json")))["learner"]["gradient_booster"]["model"]["trees"]
            convert.to_ydf(trees, self.info["bs"], self.features).save(path)
        model = module.load_model(path)
        columns = [(name, int(name[1:])) for name in model.input_feature_names()]
        self.call = lambda rows: model.predict({name: rows[:, i] for name, i in columns}, num_threads=self.threads)


class catboost(Engine):
    """CatBoost with its twin of the model (see oblivious.py), or with the model itself if that has CatBoost's trees. It
    takes no part for the models of other trainers in own.py."""

    def load(self):
        import catboost as module, oblivious, own

        self.version = module.__version__
        if self.info["trainer"] in ("sklearn", "ydf") or "linear" in self.info:
            raise Skip("another trainer's model")
        if not self.info.get("catboost_trees"):
            self.scores = None
        try:
            path = oblivious.twin(self.folder, self.info)
        except ValueError as reason:
            raise Skip(str(reason))
        model = module.CatBoost().load_model(path)
        if columns := self.info.get("categories"):
            # The table is made, and its categories are hashed, before the clock starts.
            self.argument = lambda rows: module.Pool(own.table(rows, columns), cat_features=columns)
        self.call = lambda rows: model.predict(rows, prediction_type="RawFormulaVal", thread_count=self.threads)


class sklearn(Engine):
    def load(self):
        import joblib, sklearn as module

        self.version = module.__version__
        model = joblib.load(self.file("model.joblib"))
        if hasattr(model, "n_jobs"):
            model.n_jobs = self.threads
        self.call = model.predict_proba if hasattr(model, "classes_") else model.predict


class Clock:
    """Returns the time since this was made, by the smaller of wall clock and process CPU clock: the latter leaves out
    other programs."""

    def __init__(self):
        self.begin, self.cpu_begin = now(), cpu_now()

    def seconds(self):
        return min(now() - self.begin, cpu_now() - self.cpu_begin)


def file_bytes(path, field):
    with open(path) as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(field))


def resident(model_files):
    """Returns the bytes of this process in memory: `mapped` from the model's files (whole mappings, including relocated
    parts of a shared library), `anonymous` outside of these, and pages of other files: `libraries`."""
    bytes_of, of_model = dict(anonymous=0, mapped=0, libraries=0), False
    with open("/proc/self/smaps") as file:
        for words in map(str.split, file):
            if not words[0].endswith(":"):  # a mapping's first line: range, rights, offset, device, inode, path
                path = " ".join(words[5:])
                of_model = any(path == name or path.startswith(f"{name}/") for name in model_files)
            elif words[0] == "Rss:":
                bytes_of["mapped" if of_model else "libraries"] += int(words[1]) << 10
            elif words[0] == "Anonymous:" and not of_model:
                bytes_of["anonymous"] += int(words[1]) << 10
                bytes_of["libraries"] -= int(words[1]) << 10
    return bytes_of


def restart_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # proc(5): resets the largest resident size


def return_free_memory():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(ctypes.c_size_t(0))


class Session:
    """One engine with one model, and the batches of the current cell."""

    def __init__(self, name, threads):
        self.name, self.threads, self.engine = name, threads, None
        calls = ctypes.CDLL(f"{HOME}/calls.so").make_calls
        calls.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_size_t]
        self.make_calls = calls

    def forget(self):
        if self.engine:
            self.engine.close()
        self.engine = self.batch = self.call_many = self.result = None

    def load(self, folder, **options):
        self.forget()
        self.folder, self.info = folder, json.load(open(f"{folder}/info.json"))
        begin = now()
        self.engine = globals()[self.name](folder, self.info, self.threads, options)
        return dict(version=self.engine.version, load_s=now() - begin)

    def rows(self, name):
        self.X, raw = np.load(f"{self.folder}/{name}.npy"), np.load(f"{self.folder}/{name}.raw.npy")
        self.expected = raw.reshape(len(self.X), -1)
        if self.engine.scores == "softmax":
            shifted = np.exp(self.expected - self.expected.max(1, keepdims=True))
            self.expected = shifted / shifted.sum(1, keepdims=True)
        self.batch = None
        return {}

    def use(self, batch):
        if self.batch == batch:
            return
        self.sets = min(len(self.X) // batch, MOST_SETS)
        self.give([np.ascontiguousarray(self.X[i * batch : (i + 1) * batch]) for i in range(self.sets)])
        self.batch, self.next = batch, 0
        for _ in range(2):  # the first call may make what later ones reuse
            begin = now()
            self.call_many(0, 1)
            self.once = now() - begin
            if self.once > SLOW_CALL:
                return

    def give(self, blocks):
        """Prepares rows as the engine wants them, and `call_many` to predict them."""
        engine, sets = self.engine, len(blocks)
        engine.keep = []
        if engine.entry is not None:
            arguments = np.zeros((sets, 12), np.uint64)
            for i, block in enumerate(blocks):
                given = engine.arguments(block)
                arguments[i, : len(given)] = given
            engine.keep += [blocks, arguments]
            self.call_many = lambda first, count: self.make_calls(engine.entry, address(arguments), sets, first, count)
        else:
            prepared, call = [engine.argument(block) for block in blocks], engine.call

            def call_many(first, count):
                for i in range(first, first + count):
                    self.result = call(prepared[i % sets])

            self.call_many = call_many

    def answers(self, i):
        self.call_many(i, 1)
        engine = self.engine
        said = (
            engine.c_answer(self.batch).copy() if engine.entry is not None else engine.answer(self.result, self.batch)
        )
        return np.asarray(said).reshape(self.batch, -1)

    def check(self, batch):
        """Compares at least 512 rows' answers, in batches of this size, with the trainer's."""
        self.use(batch)
        if self.engine.scores is None:
            return {}
        sets = min(self.sets, max(1, 512 // batch))
        said = np.concatenate([self.answers(i) for i in range(sets)])
        expected = self.expected[: len(said)]
        equal = said.astype(np.float32).view(np.uint32) == expected.astype(np.float32).view(np.uint32)
        off = np.abs(said.astype(np.float64) - expected)
        return dict(
            checked=int(said.size),
            equal_bits=int(equal.sum()),
            max_difference=float(off.max()),
            largest=float(np.abs(expected).max()),
        )

    def time(self, batch, seconds):
        """Times one turn. Returns median and smallest of the samples, us per row, by the wall clock and by the
        process's CPU clock."""
        self.use(batch)
        wall, cpu, begin = [], [], now()
        calls = max(1, int(SAMPLE / max(self.once, 1e-7)))
        if self.once < seconds:
            self.call_many(self.next, calls)  # fills the caches: another engine ran before
        while not wall or now() - begin < seconds:
            cpu_start, start = cpu_now(), now()
            self.call_many(self.next, calls)
            end, cpu_end = now(), cpu_now()
            self.next = (self.next + calls) % self.sets
            wall.append((end - start) / calls / batch * 1e6)
            cpu.append((cpu_end - cpu_start) / calls / batch * 1e6)
        return dict(
            wall_median=statistics.median(wall),
            wall_min=min(wall),
            cpu_median=statistics.median(cpu),
            cpu_min=min(cpu),
            samples=len(wall),
            call_s=min(wall) * batch * 1e-6,
        )

    def cost(self, folder, batch, **options):
        """Returns the seconds from the model's file to the first batch's answers, and bytes of memory, without the rows
        and their preparation. `grown` is the growth of the process, `held` what is left of it after free memory has
        gone back to the system, and `peak` the growth while the model was loaded."""
        self.forget()
        rows = np.array(np.load(f"{folder}/rows.npy", mmap_mode="r")[:batch])
        model_files = [os.path.realpath(path) for path in (folder, options.get("program")) if path]
        return_free_memory()
        restart_peak()
        rss, before = file_bytes("/proc/self/status", "VmRSS"), resident(model_files)
        clock = Clock()
        self.load(folder, **options)
        load_s = clock.seconds()
        peak = file_bytes("/proc/self/status", "VmHWM") - rss
        gc.collect()
        loaded = resident(model_files)
        self.give([rows])
        given = resident(model_files)
        clock = Clock()
        self.call_many(0, 1)
        first_s = clock.seconds()
        gc.collect()
        grown = resident(model_files)
        return_free_memory()
        held = resident(model_files)

        def growth(after):
            return {kind: after[kind] - given[kind] + loaded[kind] - before[kind] for kind in before}

        return dict(
            version=self.engine.version,
            load_s=load_s,
            first_s=first_s,
            loaded={kind: loaded[kind] - before[kind] for kind in before},
            grown=growth(grown),
            held=growth(held),
            peak=peak,
        )


warnings.filterwarnings("ignore")
serve(Session(sys.argv[1], int(sys.argv[2])))
