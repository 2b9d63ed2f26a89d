"""Measures the processor time of calls."""
import time

CALL_SECONDS = 0.05  # shorter calls are repeated for about this time


def timed(function):
    """Returns the processor time in seconds that the function takes, and its result."""
    begin = time.process_time()
    result = function()
    return time.process_time() - begin, result


def timed_often(call):
    """Returns the processor time in seconds that a call takes, and its result."""
    taken, result = timed(call)
    calls = int(CALL_SECONDS / max(taken, 1e-7))

    def repeat():
        for _ in range(calls):
            call()

    return (timed(repeat)[0] / calls if calls > 1 else taken), result
