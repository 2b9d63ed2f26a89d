"""forestvm in threadpoolctl, which limits the threads of several libraries at once."""

from __future__ import annotations

import sys
import threading
from typing import Any

from . import _core, _threads

_unregistered = threading.Lock()  # The thread that takes it registers forestvm, and keeps it.


class _NoLimit(int):
    """The number of threads without a limit. When its own limit ends, threadpoolctl sets the limit to this again."""


def register() -> None:
    """Makes forestvm known to threadpoolctl, if the program has imported threadpoolctl."""
    threadpoolctl: Any = sys.modules.get("threadpoolctl")
    if hasattr(threadpoolctl, "register") and _unregistered.acquire(blocking=False):
        threadpoolctl.register(_controller(threadpoolctl))


def _controller(threadpoolctl: Any) -> Any:
    class ForestvmController(threadpoolctl.LibController):  # type: ignore[misc]
        """Limits the threads of the calls that the calling thread makes."""

        user_api = "forestvm"
        internal_api = "forestvm"
        filename_prefixes = ("_core.",)
        check_symbols = ("forestvm_python_version",)

        def get_num_threads(self) -> int:
            return _core.thread_limit() or _NoLimit(_threads.thread_count(None))

        def set_num_threads(self, num_threads: int) -> None:
            _core.limit_threads(0 if isinstance(num_threads, _NoLimit) else max(1, num_threads))

        def get_version(self) -> str:
            return _core.__version__

    return ForestvmController
