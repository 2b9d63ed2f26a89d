"""Fitted estimators whose predictions a forest computes.

``accelerate`` changes no module and no class: it returns a copy of the estimator, whose class is a subclass of the
estimator's. Trees and all other attributes are shared with the estimator that it was made of.
"""

from __future__ import annotations

import copy
import copyreg
import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar


from ._adapters import Adapter, LightgbmAdapter, Method, NotTaken, XgboostAdapter
from ._errors import Error, Refused, UnsupportedInput, Usage
from ._sklearn_adapter import sklearn_adapter
from ._verify import difference
from .trainers import _trainer_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LogEntry", "accelerate", "log"]

Estimator = TypeVar("Estimator")

_KEY = "_forestvm"
_MODULES: Mapping[str, Callable[[Any, dict[str, Any]], Adapter]] = {
    "xgboost": XgboostAdapter,
    "lightgbm": LightgbmAdapter,
    "sklearn": sklearn_adapter,
}
_OTHER_TREES = "the estimator has other trees now: accelerate it again"
_MAX_REASONS = 100  # limits the log, because reasons may quote values of the rows
#: Methods that change the model. After a call of one, the estimator's own methods answer.
_CHANGES = ("fit", "set_params", "load_model", "partial_fit")


class LogEntry(NamedTuple):
    """Calls of one method that the estimator itself answered for one reason."""

    method: str
    reason: str
    calls: int


def accelerate(estimator: Estimator, *, verify: object = None, **options: Any) -> Estimator:
    """Returns a copy of a fitted estimator whose predictions forestvm computes.

    ``predict``, ``predict_proba``, ``decision_function`` and ``apply`` give what the estimator's own methods give. A
    call that forestvm does not take (``base_margin``, contributions of features, unusual rows) is answered by the
    estimator's own method, and :func:`log` says why. ``fit``, ``set_params`` and whatever else replaces the trees drop
    the program: accelerate the estimator again after them. A pickle of the result holds the estimator alone, of its own
    class, and needs no forestvm.

    Args:
        estimator: A fitted estimator of scikit-learn, XGBoost's or LightGBM's scikit-learn classes, or a ``Pipeline``
            that ends with one: its last step is accelerated.
        verify: Rows on which all methods are compared with the estimator's own. Labels and leaves must be equal, and
            other numbers have the same bits, but for the units in the last place that docs/contracts.md allows.
        **options: Options of :func:`forestvm.load`.

    Returns:
        An instance of a subclass of the estimator's class; for a ``Pipeline`` a ``Pipeline``.

    Raises:
        Usage: The estimator is not fitted, or ``verify`` holds rows that forestvm leaves to the estimator.
        UnsupportedInput: The estimator is of a class that is not supported.
        Refused: The model has a part that is not supported, or ``verify`` found a difference.
    """
    result: Estimator
    if _is_pipeline(estimator):
        result = _accelerate_pipeline(estimator, verify, options)
        return result
    adapter = _compile(estimator, options)
    result = _with_program(estimator, _Program(adapter, adapter.methods(estimator)))
    if verify is not None:
        _verify(_plain(estimator), result.__dict__[_KEY], verify)
    return result


def log(estimator: object) -> list[LogEntry]:
    """Returns which calls of an accelerated estimator were answered by the estimator itself, and why.

    Args:
        estimator: What :func:`accelerate` returned.

    Returns:
        An entry for each method and reason, in the order in which they first occurred; after a hundred reasons, one
        entry for all others of a method.

    Raises:
        Usage: The estimator is not accelerated; a clone is not.
    """
    if _is_pipeline(estimator):
        estimator = estimator.steps[-1][1]  # type: ignore[attr-defined]
    program = getattr(estimator, "__dict__", {}).get(_KEY)
    if program is None:
        raise Usage(f"this {type(estimator).__name__} is not accelerated")
    return [LogEntry(method, reason, calls) for (method, reason), calls in program.log.items()]


def _is_pipeline(estimator: object) -> bool:
    return any(
        base.__name__ == "Pipeline" and base.__module__ == "sklearn.pipeline" for base in type(estimator).__mro__
    )


def _accelerate_pipeline(pipeline: Any, verify: object, options: dict[str, Any]) -> Any:
    """Returns a Pipeline with an accelerated last step. Steps are copied, so that a fit leaves the original alone."""
    name, last = pipeline.steps[-1]
    if verify is not None:
        verify = pipeline[:-1].transform(verify) if len(pipeline.steps) > 1 else verify
    result = _copy(pipeline, type(pipeline))
    steps = [(key, _copy(step, type(step)) if hasattr(step, "fit") else step) for key, step in pipeline.steps[:-1]]
    result.steps = [*steps, (name, accelerate(last, verify=verify, **options))]
    return result


def _compile(estimator: Any, options: dict[str, Any]) -> Adapter:
    module = _MODULES.get(_trainer_of(estimator) or "")
    if module is None or not hasattr(estimator, "get_params"):
        kind = f"{type(estimator).__module__}.{type(estimator).__qualname__}"
        raise UnsupportedInput(
            "accelerate takes estimators of scikit-learn, and those of XGBoost and LightGBM with its interface, not "
            f"{kind}: load, from_xgboost, from_lightgbm and from_catboost make forests of other models"
        )
    return module(_plain(estimator), options)


def _verify(estimator: Any, program: _Program, rows: object) -> None:
    assert program.adapter is not None
    taken = 0
    for name, method in program.own_methods(type(estimator)).items():
        try:
            ours = method(estimator, rows)
        except NotTaken as reason:
            program.note(name, str(reason))
            continue
        taken += 1
        own = getattr(estimator, name)(rows)
        found = difference(name, ours, own, program.adapter.ulps, program.adapter.absolute)
        if found is not None:
            raise Refused(f"verify: {found}")
    if taken == 0:
        raise Usage("verify: the estimator itself would answer for these rows: " + "; ".join(r for _, r in program.log))


class _Program:
    """The program of an accelerated estimator, and the log of the calls that the estimator itself answered."""

    def __init__(self, adapter: Adapter | None, methods: Mapping[str, Method], dropped: str = "") -> None:
        self.adapter = adapter
        self.methods = methods
        self.log: dict[tuple[str, str], int] = {}
        self._dropped = dropped

    def answer(self, estimator: Any, name: str, original: Method, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Returns what a method gives. Raises NotTaken for a call that is left to the estimator."""
        if self.adapter is None:
            raise NotTaken(self._dropped)
        if not self.adapter.is_current(estimator):
            raise NotTaken(_OTHER_TREES)
        method = self.methods[name]
        if len(args) == 1 and not named:
            return method(estimator, args[0])
        rows, arguments = self.adapter.arguments(original, estimator, args, named)
        return method(estimator, rows, **arguments)

    def bound_to(self, copied: Any, estimator: Any) -> _Program:
        """Returns a program for `estimator`, a copy of `copied`, to which this program belongs."""
        if self.adapter is None or not self.adapter.is_current(copied):
            return _Program(None, {}, self._dropped or _OTHER_TREES)
        adapter = copy.copy(self.adapter)
        adapter.bind(estimator)
        return _Program(adapter, adapter.methods(estimator))

    def note(self, method: str, reason: str) -> None:
        if (method, reason) not in self.log and len(self.log) >= _MAX_REASONS:
            reason = "other reasons"
        self.log[method, reason] = self.log.get((method, reason), 0) + 1

    def own_methods(self, kind: type) -> dict[str, Method]:
        """Returns the methods that are computed for this class, without those that a user's class overrides."""
        package = self.adapter.package if self.adapter is not None else ""
        return {name: method for name, method in self.methods.items() if _is_of(package, getattr(kind, name))}


def _is_of(package: str, function: Any) -> bool:
    return str(getattr(function, "__module__", "")).partition(".")[0] == package


@functools.cache
def _class_of(kind: type, package: str, names: tuple[str, ...]) -> type:
    """Returns the subclass whose methods `names` are computed."""
    members: dict[str, Any] = {
        "__doc__": kind.__doc__,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__copy__": lambda self: _copy(self, type(self)),
        "__deepcopy__": _deep_copy,
        "__reduce_ex__": _reduce,
        _KEY + "_base": kind,
    }
    for name in names:
        if _is_of(package, getattr(kind, name)):
            members[name] = _computed(getattr(kind, name), name)
    for name in _CHANGES:
        if hasattr(kind, name):
            members[name] = _changing(getattr(kind, name), name)
    return type(kind.__name__, (kind,), members)


def _computed(original: Method, name: str) -> Method:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        program: _Program | None = self.__dict__.get(_KEY)
        if program is None:
            return original(self, *args, **named)
        try:
            return program.answer(self, name, original, args, named)
        except (NotTaken, Error) as error:
            program.note(name, str(error))
        return original(self, *args, **named)

    return method


def _changing(original: Method, name: str) -> Method:
    @functools.wraps(original)
    def method(self: Any, *args: Any, **named: Any) -> Any:
        if _KEY in self.__dict__:
            self.__dict__[_KEY] = _Program(None, {}, f"{name} was called: accelerate the estimator again")
        return original(self, *args, **named)

    return method


def _with_program(estimator: Any, program: _Program) -> Any:
    """Returns an accelerated copy of an estimator."""
    adapter = program.adapter
    assert adapter is not None
    kind: type = getattr(type(estimator), _KEY + "_base", type(estimator))
    result = _copy(estimator, _class_of(kind, adapter.package, tuple(sorted(program.methods))))
    adapter.bind(result)
    for name in program.methods:
        if not _is_of(adapter.package, getattr(kind, name)):
            program.note(name, f"{kind.__name__} has a method of its own")
    result.__dict__[_KEY] = program
    return result


def _copy(estimator: Any, kind: type) -> Any:
    """Returns a shallow copy. Lists are copied as well: a warm start appends to an estimator's list of trees."""
    result: Any = object.__new__(kind)
    for name, value in estimator.__dict__.items():
        result.__dict__[name] = value[:] if isinstance(value, list) else value
    program = estimator.__dict__.get(_KEY)
    if program is not None:
        result.__dict__[_KEY] = program.bound_to(estimator, result)
    return result


def _plain(estimator: Any) -> Any:
    """Returns a copy of an accelerated estimator in its own class; any other estimator itself."""
    kind = getattr(type(estimator), _KEY + "_base", None)
    if kind is None:
        return estimator
    result = _copy(estimator, kind)
    result.__dict__.pop(_KEY, None)
    return result


def _reduce(self: Any, protocol: Any) -> Any:
    """Returns what pickle stores: the estimator without its program."""
    reduced = _plain(self).__reduce_ex__(protocol)
    if reduced[0] is not copyreg.__newobj__:  # type: ignore[attr-defined]
        return reduced
    # pickle requires the class in __newobj__ to be the object's own; copyreg._reconstructor makes the same object.
    return (copyreg._reconstructor, (*reduced[1], object, None), *reduced[2:])  # type: ignore[attr-defined]


def _deep_copy(self: Any, memo: dict[int, Any]) -> Any:
    result = _copy(copy.deepcopy(_plain(self), memo), type(self))
    program = self.__dict__.get(_KEY)
    if program is not None:
        result.__dict__[_KEY] = program.bound_to(self, result)
    return result
