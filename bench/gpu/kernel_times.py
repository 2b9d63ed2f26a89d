"""The time that kernels take on the GPU, measured by CUPTI through PyTorch's profiler, which sees all kernels of the
process, also each kernel of a graph, whoever launches them."""

import json, os, tempfile


def of_trace(trace, calls):
    """Returns microseconds of kernels per call, from a trace of `calls` equal calls in Chrome's format. Returns None if
    it has no kernels, or a number that is not a multiple of the calls, which means that some were not seen."""
    times = [event["dur"] for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    return sum(times) / calls if times and len(times) % calls == 0 else None


def microseconds(call, calls, wait):
    """Returns microseconds of kernels per call, or None if they cannot be told. `wait` waits for the GPU. Earlier calls
    must have done what only first calls do."""
    import torch.profiler

    wait()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(calls):
            call()
        wait()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profile.export_chrome_trace(path)
        with open(path) as file:
            return of_trace(json.load(file), calls)
