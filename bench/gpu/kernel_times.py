"""The time that kernels take on the GPU, from CUPTI through PyTorch's profiler. It sees all kernels of the process,
whoever launches them, and those in graphs one by one."""

import json, os, tempfile


def of_trace(trace, calls):
    """Returns microseconds of kernels per call, from a trace of `calls` equal calls in Chrome's format; None if it has
    no kernels, or not the same number for each call: some were not seen then."""
    times = [event["dur"] for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    return sum(times) / calls if times and len(times) % calls == 0 else None


def microseconds(call, calls, wait):
    """Returns microseconds of kernels per call, or None if they cannot be told. `wait` waits for the GPU. Calls that
    came before must have done what only first calls do."""
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
