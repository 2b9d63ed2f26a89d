"""Runs one job on the GPU in a process of its own: worker.py JOB.json; each result is a line of JSON on standard
output. `run` writes the job and starts this in the environment of `install`. A job has a case (a function below), a
model's files and the programs compiled for it. Rows are on the GPU before a clock starts, and answers stay there,
except in B6."""

import gzip, json, math, os, statistics, sys, tempfile, time

out = os.fdopen(os.dup(1), "w")  # output of libraries must not mix with the results
os.dup2(2, 1)
import cupy as cp
import numpy as np

import api, kernel_times

CALLS, ROUNDS = 50, 5
WAITED_CALLS = 200
CHOOSING_CALLS = 10  # calls of each candidate
LONG_CALL = 0.1  # seconds from which FEW_CALLS are enough
FEW_CALLS = 3
FEW_ROWS = 32
now = time.perf_counter


def say(**result):
    out.write(json.dumps(result) + "\n")
    out.flush()


def synchronize():
    cp.cuda.runtime.deviceSynchronize()


def warmed_up(call, calls, wait=synchronize):
    """Makes first calls, because forestvm makes a graph in the second one. Returns the number of calls to time:
    `calls`, or FEW_CALLS if a call takes long."""
    for _ in range(3):
        call()
    wait()
    begin = now()
    call()
    wait()
    return calls if now() - begin < LONG_CALL else FEW_CALLS


def timed(call, wait=synchronize):
    """Returns microseconds per call, by the clock and by CUDA events: the median of the rounds' means. A round is at
    least CALLS calls without a pause, waited for at the end."""
    calls = warmed_up(call, CALLS, wait)
    clocks, events = [], []
    for _ in range(ROUNDS):
        first, last = cp.cuda.Event(), cp.cuda.Event()
        begin = now()
        first.record()
        for _ in range(calls):
            call()
        last.record()
        wait()
        clocks.append((now() - begin) / calls * 1e6)
        last.synchronize()
        events.append(cp.cuda.get_elapsed_time(first, last) / calls * 1e3)
    return dict(call_us=statistics.median(clocks), event_us=statistics.median(events))


def alone(call, wait=synchronize):
    """Returns microseconds of a call that is waited for: the median of many."""
    times = []
    for _ in range(warmed_up(call, WAITED_CALLS, wait)):
        begin = now()
        call()
        wait()
        times.append((now() - begin) * 1e6)
    return statistics.median(times)


def rows_of(job, count):
    """Returns `count` rows: the model's, repeated as needed."""
    rows = np.load(job["rows"])
    return np.ascontiguousarray(np.resize(rows, (count, rows.shape[1])), dtype=np.float32)


def difference(job, scores, count):
    """Returns the largest difference from the trainer's bits, over the rows that the host predicted, relative to the
    largest score."""
    expected = np.load(job["expected"]).reshape(-1)
    said = cp.asnumpy(scores).reshape(-1)[: len(expected)].astype(np.float32)
    expected = expected[: len(said)]
    off = np.abs(said.astype(np.float64) - expected)
    return dict(
        checked=len(said),
        equal_bits=int((said.view(np.uint32) == expected.astype(np.float32).view(np.uint32)).sum()),
        max_difference=float(off.max()),
        largest=float(np.abs(expected).max()),
    )


class Forestvm:
    def __init__(self, job, path):
        self.program = api.Program(api.Library(job["library"], job.get("needs", ())), path)

    def calls(self, rows, count):
        self.scores = cp.empty(count * self.program.outputs, cp.float32)
        given, taken = rows.data.ptr, self.scores.data.ptr
        return lambda: self.program.predict(given, count, taken)

    def whole_calls(self, rows, count):
        """Returns a call that does the same work as nvForest's: it allocates its scores and ends when they are
        there."""
        given = rows.data.ptr

        def call():
            self.scores = cp.empty(count * self.program.outputs, cp.float32)
            self.program.predict(given, count, self.scores.data.ptr)
            cp.cuda.Stream.null.synchronize()

        return call

    def close(self):
        self.program.close()


def opened(job):
    """Opens the job's programs. Returns by label those that the GPU accepts; for each other one a result says why
    not."""
    engines = {}
    for label, path in job["programs"].items():
        try:
            engines[label] = Forestvm(job, path)
        except RuntimeError as reason:
            say(left_out=label, reason=str(reason))
    return engines


class Nvforest:
    """nvForest with the job's model. It returns raw scores in float32, as forestvm does."""

    def __init__(self, job):
        import rmm  # noqa: F401  (imported first: if libraft is not installed, nvForest needs symbols of rmm's library)
        import nvforest, treelite

        source = job["source"]
        with tempfile.TemporaryDirectory() as folder:
            if source.endswith(".gz"):
                plain = f"{folder}/{os.path.basename(source)[:-3]}"
                with gzip.open(source, "rb") as packed, open(plain, "wb") as file:
                    file.write(packed.read())
                source = plain
            if source.endswith(".txt"):
                model = treelite.frontend.load_lightgbm_model(source)
            else:
                form = "json" if source.endswith(".json") else "ubjson"
                model = treelite.frontend.load_xgboost_model(source, format_choice=form)
        header = model.get_header_accessor()
        header.set_field("postprocessor", "identity" if job["outputs"] == 1 else "identity_multiclass")
        self.model = self.first = nvforest.load_from_treelite_model(
            model, device="gpu", precision="single"
        )
        self.method = "predict_proba" if hasattr(self.model, "predict_proba") else "predict"
        self.version = nvforest.__version__

    def optimize(self, rows, batch):
        """Optimizes for this batch size with real rows: up to ten batches of them."""
        batches = max(1, min(10, len(rows) // batch))
        data = rows[: batches * batch].reshape(batches, batch, rows.shape[1])
        self.model = self.first.optimize(data=data, predict_method=self.method)
        return dict(layout=self.model.layout, chunk=self.model.default_chunk_size)

    def whole_calls(self, rows, count):
        """Returns a call as nvForest's users make it: it allocates its scores and ends when they are there."""
        predict, batch = getattr(self.model, self.method), rows[:count]

        def call():
            self.scores = predict(batch)

        return call


def b2(job):
    """Times forestvm with the program that `straight` runs without an interpreter."""
    engine = Forestvm(job, job["programs"]["gpu"])
    rows = cp.asarray(rows_of(job, max(job["batches"])))
    for batch in job["batches"]:
        call = engine.calls(rows, batch)
        times = timed(call)
        say(batch=batch, alone_us=alone(call), **times, **difference(job, engine.scores, batch))


def kernel_us(call, calls):
    """Returns microseconds of kernels per call, or None."""
    return kernel_times.microseconds(call, warmed_up(call, calls), synchronize)


def measured(job, engine, rows, batch):
    """Returns an engine's times: of kernels alone, and of whole calls by the clock. A whole call of either engine
    allocates its scores and is waited for."""
    call = engine.whole_calls(rows, batch)
    times = dict(kernel_us=kernel_us(call, CALLS), call_us=alone(call))
    return dict(times, **difference(job, engine.scores, batch))


def beside(job):
    """Returns nvForest with the job's model; None, after printing the reason, if that fails."""
    try:
        return Nvforest(job)
    except Exception as reason:
        say(left_out="nvForest", reason=repr(reason))
        return None


def b3(job):
    """Times forestvm, with the candidate whose kernels are fastest, and nvForest, optimized for the batch, in turn on
    the same rows. job["beside"]: whether nvForest is there. job["until"]: the time after which no batch begins."""
    engines = opened(job)
    if not engines:
        return say(error=f"none of its {len(job['programs'])} programs can be opened on the GPU")
    rows = cp.asarray(rows_of(job, max(job["batches"])))
    nvforest = beside(job) if job["beside"] else None
    for batch in job["batches"]:
        if time.time() > job.get("until", math.inf):
            return
        calls = {label: engine.whole_calls(rows, batch) for label, engine in engines.items()}
        kernels = {label: kernel_us(call, CHOOSING_CALLS) for label, call in calls.items()}
        seen = {label: us for label, us in kernels.items() if us is not None}
        if not seen:
            return say(error=f"{batch} rows: the profiler saw no kernels, or not those of all calls")
        best = min(seen, key=seen.get)
        results = dict(forestvm=dict(measured(job, engines[best], rows, batch), schedule=best))
        if nvforest:
            try:
                tuned = nvforest.optimize(rows, batch)
                results["nvforest"] = dict(measured(job, nvforest, rows, batch), **tuned, version=nvforest.version)
            except Exception as reason:  # forestvm's times are worth keeping without nvForest's
                say(left_out=f"nvForest, {batch} rows", reason=repr(reason))
        say(batch=batch, engines=results, kernels=kernels)


def shapes(job):
    """Times the kernels of every form of a block; a form of more rows than a batch has only if it has few."""
    engines = opened(job)
    rows = cp.asarray(rows_of(job, max(job["batches"])))
    for batch in job["batches"]:
        if time.time() > job["until"]:
            return
        kernels = {}
        for label, engine in engines.items():
            if int(label.split()[0]) <= max(batch, FEW_ROWS):
                kernels[label] = kernel_us(engine.whole_calls(rows, batch), CHOOSING_CALLS)
        say(batch=batch, kernels=kernels)


def b4(job):
    """Times each ablation."""
    rows = cp.asarray(rows_of(job, max(job["batches"])))
    for label, path in job["programs"].items():
        try:
            engine = Forestvm(job, path)
        except RuntimeError as reason:
            say(label=label, refused=str(reason))
            continue
        for batch in job["batches"]:
            times = timed(engine.calls(rows, batch))
            say(label=label, batch=batch, **times, **difference(job, engine.scores, batch))
        engine.close()


def b5(job):
    """Opens and times each compiled point, and measures the time that this search takes."""
    rows = cp.asarray(rows_of(job, job["batch"]))
    for label, path in job["programs"].items():
        begin = now()
        try:
            engine = Forestvm(job, path)
            call = engine.calls(rows, job["batch"])
            call()
            synchronize()
            start = now()
            for _ in range(3):
                call()
            synchronize()
            call_us = (now() - start) / 3 * 1e6
            engine.close()
        except RuntimeError as reason:
            say(point=label, refused=str(reason), search_s=now() - begin)
            continue
        say(point=label, call_us=call_us, search_s=now() - begin)


def b6(job):
    """Times calls whose rows come from the host and whose scores go back: by forestvm's own call, from pageable memory;
    from pinned memory; from pinned memory in slabs, on two streams with a context each."""
    library = api.Library(job["library"])
    for batch in job["batches"]:
        pageable = rows_of(job, batch)
        lanes = [api.Program(library, job["programs"]["gpu"]) for _ in range(2)]
        outputs = lanes[0].outputs
        answers = np.empty(batch * outputs, np.float32)
        pinned = cp.cuda.alloc_pinned_memory(pageable.nbytes)
        rows = np.frombuffer(pinned, np.float32, pageable.size).reshape(pageable.shape)
        rows[...] = pageable
        back = cp.cuda.alloc_pinned_memory(answers.nbytes)
        scores = np.frombuffer(back, np.float32, answers.size)
        slab = max(1, min(batch, (16 << 20) // (4 * rows.shape[1])))
        streams = [cp.cuda.Stream(non_blocking=True) for _ in lanes]
        given = [cp.empty((slab, rows.shape[1]), cp.float32) for _ in lanes]
        taken = [cp.empty(slab * outputs, cp.float32) for _ in lanes]

        def two_streams():
            for i, begin in enumerate(range(0, batch, slab)):
                lane, end = i % 2, min(batch, begin + slab)
                stream, count = streams[lane], end - begin
                given[lane].data.copy_from_host_async(rows[begin:end].ctypes.data, rows[begin:end].nbytes, stream)
                lanes[lane].predict(given[lane].data.ptr, count, taken[lane].data.ptr, stream.ptr)
                to = scores[begin * outputs : end * outputs]
                taken[lane].data.copy_to_host_async(to.ctypes.data, to.nbytes, stream)
            for stream in streams:
                stream.synchronize()

        ways = {
            "pageable": lambda: lanes[0].predict_host(pageable.ctypes.data, batch, answers.ctypes.data),
            "pinned": lambda: lanes[0].predict_host(rows.ctypes.data, batch, answers.ctypes.data),
            "pinned, two streams": two_streams,
        }
        for label, call in ways.items():
            times = timed(call)
            said = scores if label == "pinned, two streams" else answers
            say(label=label, batch=batch, bytes=pageable.nbytes, **times, **difference(job, said, batch))
        for lane in lanes:
            lane.close()


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    globals()[job["case"]](job)


if __name__ == "__main__":
    main()
