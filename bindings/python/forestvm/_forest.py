"""Defines Forest, and the functions that make one from a file or from memory."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union, overload

from . import _arguments, _core, _threadpools, _threads
from ._errors import ContractWarning, UnsupportedInput, Usage

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from typing_extensions import Buffer, Self

    from ._draw import Drawing
    from ._prediction_stream import PredictionStream

# The number of virtual ensembles of calls that do not say it.
_ENSEMBLES = 10


class _Calls(NamedTuple):
    """Options of calls that the extension's forests keep."""

    every: int = 1
    ensembles: int = _ENSEMBLES
    features: tuple[int, ...] = ()  # ascending; none: all
    quantiles: tuple[float, ...] = ()  # none: the default ones


Source = Union[str, "os.PathLike[str]", "Buffer"]


class Forest(_core.Forest):
    """A model that is ready to predict. It never changes, and any number of threads may use it at once.

    `load`, `from_xgboost`, `from_lightgbm` and `from_sklearn` make one.
    """

    __slots__ = ("__weakref__", "_options", "_names", "_schema", "_calls")

    _options: dict[str, Any]
    _names: tuple[str, ...]
    _schema: Any  # The columns of the last pandas frame that had the model's names; the next frame often shares them.
    # The options of the last call that had some, and the forest that answered it.
    _calls: tuple[_Calls, Forest] | None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features; empty if the model has none."""
        return self._names

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of the classes, as texts; empty if the model's file has none."""
        return self._classes

    @property
    def program_fingerprint(self) -> str:
        """32 hexadecimal digits that name the program: a digest of its bytes, which is computed at each call.

        Forests with the same one have the same bits on the same rows and machine. `fingerprint` names the model.
        """
        return digest_of(memoryview(self))

    @property
    def categories(self) -> Mapping[str | int, tuple[str, ...]]:
        """The named categories of each feature that has some, by the feature's name, or its number if it has none."""
        names = self.feature_names
        return {names[feature] if names else feature: texts for feature, texts, _ in self._category_tables}

    def encode(
        self, X: Any, *, missing: float | None = None, columns: str = "name", extra: str = "error"
    ) -> _core.EncodedRows:
        """Encodes rows once, for models whose predictions read codes: `predict` and its variants take the result."""
        from . import _rows

        return _rows.encode(self, X, missing, columns, extra)

    @overload
    def contributions(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = ...,
        dtype: DTypeLike | None = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
        features: Sequence[str | int] | None = ...,
        top: None = ...,
        base_margin: Any = ...,
    ) -> NDArray[Any]: ...

    @overload
    def contributions(
        self,
        X: Any,
        *,
        out: None = ...,
        dtype: DTypeLike | None = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
        features: Sequence[str | int] | None = ...,
        top: int,
        base_margin: Any = ...,
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...

    def contributions(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        features: Sequence[str | int] | None = None,
        top: int | None = None,
        base_margin: Any = None,
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Returns what each feature contributes to the raw scores: exact SHAP values by the paths of the trees.

        The array has the shape (rows, features + 1), or (rows, outputs, features + 1) if the model has several
        outputs. The last number is the expected score; it and the contributions add up to the raw score. The forest
        must have been loaded with `contributions=True`. If it was loaded with a background, rows are compared with
        those of the background instead.

        features: names or numbers of features: the array has these alone, in this order, and the expected score.
        top:      returns the largest numbers of each row by their absolute values instead, as two arrays: the numbers
                  of the features (int64) and their contributions, (rows, top) or (rows, outputs, top). The largest
                  comes first, and of equal ones the first feature. The expected score is not among them.
        base_margin: numbers of the shape (rows,) or (rows, outputs) from which the scores of the rows start instead of
                  the model's base scores, as XGBoost's `base_margin`: the expected scores differ accordingly.

        The other options are those of `predict`.
        """
        return self._explain("contributions", 1, X, out, dtype, missing, columns, extra, features, top, base_margin)

    @overload
    def interactions(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = ...,
        dtype: DTypeLike | None = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
        max_bytes: int = ...,
        features: Sequence[str | int] | None = ...,
        top: None = ...,
        base_margin: Any = ...,
    ) -> NDArray[Any]: ...

    @overload
    def interactions(
        self,
        X: Any,
        *,
        out: None = ...,
        dtype: DTypeLike | None = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
        max_bytes: int = ...,
        features: Sequence[str | int] | None = ...,
        top: int,
        base_margin: Any = ...,
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...

    def interactions(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        max_bytes: int = 64 << 20,
        features: Sequence[str | int] | None = None,
        top: int | None = None,
        base_margin: Any = None,
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Returns what each two features contribute together to the raw scores: exact SHAP interactions.

        The array has the shape (rows, features + 1, features + 1), or (rows, outputs, features + 1, features + 1) if
        the model has several outputs. The matrices are symmetric, and their rows add up to the contributions; what a
        feature contributes alone is on the diagonal, and the expected score is the last number. The forest must have
        been loaded with `interactions=True`. A row that takes more than `max_bytes` is an error.

        features: names or numbers of features: the matrices have these alone, in this order, and the expected score.
        top:      returns the largest numbers of each row by their absolute values instead, as two arrays: the numbers
                  of the two features, (rows, top, 2), and the value in one of their two places, (rows, top), with the
                  outputs after the rows if there are several. A feature stands with itself for what it does alone.
        base_margin: see `contributions`.

        The other options are those of `predict`.
        """
        return self._explain(
            "interactions", 2, X, out, dtype, missing, columns, extra, features, top, base_margin, max_bytes
        )

    @overload
    def approx_contributions(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = ...,
        dtype: DTypeLike | None = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
        features: Sequence[str | int] | None = ...,
        top: None = ...,
        base_margin: Any = ...,
    ) -> NDArray[Any]: ...

    @overload
    def approx_contributions(
        self,
        X: Any,
        *,
        out: None = ...,
        dtype: DTypeLike | None = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
        features: Sequence[str | int] | None = ...,
        top: int,
        base_margin: Any = ...,
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...

    def approx_contributions(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        features: Sequence[str | int] | None = None,
        top: int | None = None,
        base_margin: Any = None,
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Returns changes of the mean score at the splits of each feature on a row's way: XGBoost's `approx_contribs`.

        The array has the shape of `contributions`, and the numbers add up to the raw score likewise. The forest must
        have been loaded with `approx_contributions=True`. The options are those of `contributions`.
        """
        return self._explain(
            "approx-contributions", 1, X, out, dtype, missing, columns, extra, features, top, base_margin
        )

    def explain(
        self, X: Any, *, missing: float | None = None, columns: str = "name", extra: str = "error"
    ) -> Any:
        """Returns the contributions of features as an object for the plots of the package shap.

        It is a shap.Explanation if shap can be imported, otherwise an `Explanation` with the same attributes: `values`
        of the shape (rows, features), or (rows, features, outputs) if the model has several outputs, `base_values`,
        `data`, `feature_names` and `output_names`. The forest must have been loaded with `contributions=True`. The
        options are those of `predict`.
        """
        from . import _explanation

        return _explanation.explain(self, X, missing, columns, extra)

    def _explain(
        self,
        output: str,
        order: int,
        X: Any,
        out: NDArray[Any] | None,
        dtype: DTypeLike | None,
        missing: float | None,
        columns: str,
        extra: str,
        features: Sequence[str | int] | None,
        top: int | None,
        base_margin: Any,
        max_bytes: int | None = None,
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Predicts an output of which each row has (features + 1) ** order numbers for each output of the model, and
        takes at most `max_bytes` bytes."""
        from . import _terms

        chosen = None if features is None else _terms.numbers_of(self, features)
        ascending = () if chosen is None else tuple(sorted(chosen))
        used = len(ascending) or self.num_features
        if top is not None:
            _terms.check_top(top, used, order, out)
        terms = (used + 1,) * order
        shape = terms if self.num_outputs == 1 else (self.num_outputs, *terms)
        _arguments.check_array(out)
        if max_bytes is not None:
            size = self._new_result(0, "raw", None, dtype).itemsize if out is None else out.itemsize
            row_bytes = math.prod(shape) * size
            if row_bytes > max_bytes:
                raise Usage(f"the {output} of a row take {row_bytes} bytes, more than {max_bytes}", "max_bytes")
        if out is not None and (out.shape[1:] != shape or not out.flags.c_contiguous):
            wanted = ", ".join(map(str, shape))
            raise Usage(f"expected an array of the shape (rows, {wanted}) in C order, not {out.shape}", "out")
        calls = self._kept_calls(features=ascending)
        flat_out = None if out is None else out.reshape(len(out), math.prod(shape))
        flat = calls.predict(
            X,
            output=output,
            out=flat_out,
            dtype=dtype,
            missing=missing,
            columns=columns,
            extra=extra,
            base_margin=base_margin,
        )
        numbers = flat.reshape(len(flat), *shape) if out is None else out
        if top is not None:
            return _terms.strongest(numbers, ascending or range(used), top, order)
        if chosen is not None and chosen != ascending:
            in_order = _terms.in_order(numbers, ascending, chosen, order)
            if out is None:
                return in_order
            out[...] = in_order
        return numbers

    def trees(
        self,
        X: Any,
        *,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
    ) -> NDArray[Any]:
        """Returns what the leaf that a row reaches in each tree adds to the raw score, in the model's order.

        The array has the shape (rows, trees), or (rows, trees, outputs) if leaves are vectors. The forest must have
        been loaded with `keep_leaves=True`. The options are those of `predict`.
        """
        flat = self.predict(X, output="trees", dtype=dtype, missing=missing, columns=columns, extra=extra)
        width = self._leaf_width
        return flat if width == 1 else flat.reshape(len(flat), flat.shape[1] // width, width)

    @overload
    def proximity(
        self,
        X: Any,
        Y: Any = ...,
        *,
        top: None = ...,
        weights: bool = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
    ) -> NDArray[Any]: ...

    @overload
    def proximity(
        self,
        X: Any,
        Y: Any = ...,
        *,
        top: int,
        weights: bool = ...,
        missing: float | None = ...,
        columns: str = ...,
        extra: str = ...,
    ) -> tuple[NDArray[Any], NDArray[Any]]: ...

    def proximity(
        self,
        X: Any,
        Y: Any = None,
        *,
        top: int | None = None,
        weights: bool = False,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Counts the trees in which each row of X shares a leaf with each row of Y, or of X itself.

        The array is int32 and has the shape (rows of X, rows of Y). `weights=True` counts each shared leaf as 1 /
        (rows of Y in it), divided by the number of trees, as float64. `top` gives only the rows that share the most,
        as two arrays (rows of X, top): their numbers (int64), and their counts or weights. The largest comes first, of
        equal ones the first row, and a row of X is no neighbour of itself. The other options are those of `predict`.
        """
        import numpy

        leaves = self.apply(X, missing=missing, columns=columns, extra=extra)
        others = None if Y is None else self.apply(Y, missing=missing, columns=columns, extra=extra)
        count = len(leaves if others is None else others)
        dtype = numpy.float64 if weights else numpy.int32
        if top is None:
            out = numpy.empty((len(leaves), count), dtype)
            _core.share_leaves(leaves, others, out, None)
            return out
        known = max(0, count - 1) if others is None else count
        if not isinstance(top, int) or not 0 < top <= known:
            raise Usage(f"top is {top!r}: expected 1 to {known}, the number of rows to compare with", "top")
        rows, out = numpy.empty((len(leaves), top), numpy.int64), numpy.empty((len(leaves), top), dtype)
        _core.share_leaves(leaves, others, out, rows)
        return rows, out

    def staged(
        self,
        X: Any,
        every: int = 1,
        *,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        base_margin: Any = None,
    ) -> NDArray[Any]:
        """Returns the raw scores after every few rounds, and after the last: an array (rows, stages, outputs).

        every: rounds from one stage to the next. The forest must have been loaded with `keep_leaves=True`. The other
        options are those of `predict`.
        """
        calls = self._kept_calls(every=_arguments.count_of(every, "every"))
        flat = calls.predict(
            X, output="staged", dtype=dtype, missing=missing, columns=columns, extra=extra, base_margin=base_margin
        )
        return self._by_output(flat)

    def virt_ensembles(
        self,
        X: Any,
        ensembles: int = 10,
        *,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
    ) -> NDArray[Any]:
        """Returns CatBoost's `VirtEnsembles` of `virtual_ensembles_predict`: an array (rows, ensembles, outputs).

        ensembles: at most half of the rounds. The forest must have been loaded with `keep_leaves=True`. The other
        options are those of `predict`.
        """
        calls = self._kept_calls(ensembles=_arguments.count_of(ensembles, "ensembles"))
        return self._by_output(
            calls.predict(X, output="virt-ensembles", dtype=dtype, missing=missing, columns=columns, extra=extra)
        )

    def uncertainty(
        self,
        X: Any,
        ensembles: int = 10,
        *,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
    ) -> NDArray[Any]:
        """Returns how sure the model is.

        Of CatBoost's models this is what `virtual_ensembles_predict` gives as `TotalUncertainty`, an array (rows, 2)
        or (rows, 3). Of forests that average their trees it is the mean and the variance of the trees' scores, an array
        (rows, 2) or (rows, outputs, 2). The forest must have been loaded with `keep_leaves=True`. The options are those
        of `virt_ensembles`.
        """
        calls = self._kept_calls(ensembles=_arguments.count_of(ensembles, "ensembles"))
        flat = calls.predict(X, output="uncertainty", dtype=dtype, missing=missing, columns=columns, extra=extra)
        return flat if flat.shape[1] <= 3 else flat.reshape(len(flat), self.num_outputs, 2)

    def quantiles(
        self,
        X: Any,
        quantiles: Iterable[float] = (0.1, 0.5, 0.9),
        *,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
    ) -> NDArray[Any]:
        """Returns quantiles of the targets that training rows had in a row's leaves: an array (rows, quantiles).

        quantiles: numbers from 0 to 1. The forest must have been loaded with `samples=(X, y)`. The other options are
        those of `predict`.
        """
        calls = self._kept_calls(quantiles=_arguments.quantiles_of(quantiles))
        return calls.predict(X, output="quantile", dtype=dtype, missing=missing, columns=columns, extra=extra)

    def of_rounds(self, begin: int, end: int) -> Forest:
        """Returns a forest of the same program that predicts with its rounds from `begin` on and before `end`.

        It has raw scores, values, classes, trees and stages. The forest must have been loaded with `keep_leaves=True`.
        Every tree is still walked: `load(..., rounds=(begin, end))` makes a faster one. `save` writes all rounds.
        """
        return self._with_calls(_arguments.rounds_of((begin, end)))

    def _by_output(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Returns an array of raw scores after each other in the shape (rows, ..., outputs)."""
        return flat.reshape(len(flat), flat.shape[1] // self.num_outputs, self.num_outputs)

    def _kept_calls(
        self,
        every: int = 1,
        ensembles: int = _ENSEMBLES,
        features: tuple[int, ...] = (),
        quantiles: tuple[float, ...] = (),
    ) -> Forest:
        """Returns a forest whose calls have these options. The last one is kept, so that its memory serves the next
        call, too."""
        asked = _Calls(every, ensembles, features, quantiles)
        if asked == _Calls():
            return self
        last = self._calls  # read once, because another thread may replace it
        if last is None or last[0] != asked:
            last = self._calls = (asked, self._with_calls(self._options.get("rounds"), asked))
        return last[1]

    def _with_calls(self, rounds: tuple[int, int] | None, asked: _Calls = _Calls()) -> Forest:
        import numpy

        features = numpy.array(asked.features, numpy.uint32)
        quantiles = numpy.array(asked.quantiles, numpy.float64)
        calls: Forest = self._calling(*(rounds or (0, 0)), asked.every, asked.ensembles, features, quantiles)
        calls._options = self._options if rounds is None else {**self._options, "rounds": rounds}
        calls._names = self._names
        calls._schema = calls._calls = None
        return calls

    def predict_stream(
        self,
        X: Any,
        *,
        output: str = "value",
        name: str = "prediction",
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        base_margin: Any = None,
    ) -> PredictionStream:
        """Predicts a stream or table of Arrow batch by batch, as its consumer asks for them.

        The options are those of `predict`.
        """
        from . import _rows
        from ._prediction_stream import PredictionStream

        if not hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__arrow_c_array__"):
            raise UnsupportedInput(f"{type(X).__name__} gives no Arrow stream", "X")
        return PredictionStream(self, X, output, name, _rows.missing_number(missing), columns, extra, base_margin)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the program to a file (.fvm), which `load` and the C library open."""
        self._save(os.fsencode(path))

    def to_bytes(self) -> bytes:
        """Returns what `save` writes. `memoryview(forest)` gives the same without a copy."""
        return bytes(self)

    def to_dot(self, tree: int) -> str:
        """Returns a tree as the text of a Graphviz graph. Trees are numbered from 0, in the order of `apply`'s columns.

        Numbers are written in full. A branch says whether rows that pass the test take it, and where missing values go.
        Raises `Usage` if the model has no such tree.
        """
        from . import _draw

        return _draw.to_dot(self, tree)

    def plot(self, tree: int, max_depth: int | None = None) -> Drawing:
        """Draws a tree as SVG, which notebooks show and `.save(path)` writes.

        Pointing at a box shows its numbers in full.

        max_depth: levels of tests to draw; None: all. What is below is one box with the number of its leaves.
        """
        from . import _draw

        return _draw.plot(self, tree, max_depth)

    def _repr_html_(self) -> str:
        from . import _draw

        return _draw.card(self)

    @classmethod
    def from_buffer(
        cls, buffer: Buffer, *, threads: int | None = None, target: str = "auto", device: str | None = None
    ) -> Forest:
        """Opens a program (.fvm) in memory. Read-only memory at a multiple of 64 bytes is used where it lies, and kept
        alive; any other is copied."""
        return _open(buffer, {"threads": threads, "target": target, "device": device}, borrow=True)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if protocol >= 5:
            import pickle

            return _restore, (pickle.PickleBuffer(self), self._options)
        return _restore, (bytes(self), self._options)

    def __repr__(self) -> str:
        return (
            f"<forestvm.Forest: {self.trainer or 'model'} {self.objective}, {self.num_trees} trees, "
            f"{self.num_features} features, {self.num_outputs} output{'s' if self.num_outputs != 1 else ''}>"
        )


Forest.__module__ = "forestvm"


def digest_of(image: Buffer) -> str:
    """Returns the fingerprint of the program with these bytes."""
    import hashlib

    return hashlib.sha256(image).hexdigest()[:32]


def _restore(image: Buffer, options: dict[str, Any]) -> Forest:
    """Makes a forest of a pickle's content."""
    forest = _open(image, options, borrow=True)
    return forest.of_rounds(*options["rounds"]) if "rounds" in options else forest


def load(
    source: Source,
    *,
    schedule: str | os.PathLike[str] | None = None,
    contract: str | None = None,
    strict: bool = False,
    threads: int | None = None,
    target: str = "auto",
    device: str | None = None,
    rounds: tuple[int, int] | str | None = None,
    contributions: bool = False,
    keep_leaves: bool = False,
    interactions: bool = False,
    approx_contributions: bool = False,
    background: Any = None,
    samples: tuple[Any, Any] | None = None,
) -> Forest:
    """Loads a trainer's model file, or a program (.fvm), from a path or from memory.

    schedule: "auto" (the default), the name or text of a schedule, or a path (os.PathLike) of a file with one.
    contract: the bits that predictions promise: "trainer" (the default), "reproducible" or "fast".
    strict:   refuses models for which the contract cannot be kept, instead of warning.
    threads:  threads of a call; None: as many CPUs as the process may use, FORESTVM_NUM_THREADS or OMP_NUM_THREADS
              at most.
    target:   the CPU instructions: "auto", or a name such as "avx2".
    device:   a GPU, such as "cuda" or "hip:1"; None: the host.
    rounds:   the boosting rounds to use, (begin, end), or "best" for those that early stopping chose; None: all.
    contributions: lets `Forest.contributions` say what each feature contributes; the program then takes about twice
              the memory.
    keep_leaves: lets `Forest.trees`, `Forest.staged` and `Forest.of_rounds` answer; predictions then take longer.
    interactions: lets `Forest.interactions` say what each two features contribute, too, which takes more memory.
    approx_contributions: lets `Forest.approx_contributions` answer; the program then takes more memory.
    background: rows with which contributions compare a row, an array (rows, features) without column names, compiled
              into the program: contributions are then interventional SHAP values, means over these rows.
    samples:  training rows and their targets, arrays (rows, features) and (rows,), without column names: lets
              `Forest.quantiles` answer.
    """
    if isinstance(schedule, os.PathLike):
        with open(schedule, encoding="utf-8") as file:
            schedule = file.read()
    options = {"threads": threads, "target": target, "device": device}
    return _open(
        source,
        options,
        schedule,
        contract,
        strict,
        _arguments.rounds_of(rounds),
        contributions,
        keep_leaves,
        interactions,
        approx_contributions,
        background=_arguments.background_rows(background, contributions),
        samples=_arguments.sample_rows(samples),
    )


def _open(
    source: Source,
    options: dict[str, Any],
    schedule: str | None = None,
    contract: str | None = None,
    strict: bool = False,
    rounds: tuple[int, int] = (0, -1),
    contributions: bool = False,
    keep_leaves: bool = False,
    interactions: bool = False,
    approx_contributions: bool = False,
    borrow: bool = False,
    background: NDArray[Any] | None = None,
    samples: tuple[NDArray[Any] | None, NDArray[Any] | None] = (None, None),
) -> Forest:
    """Loads a model or a program. `options` are those that a pickle keeps."""
    is_path = isinstance(source, (str, os.PathLike))
    if not is_path and not _arguments.has_buffer(source):
        raise Usage(f"expected a path or the bytes of a model, not {type(source).__name__}")
    target = options["target"]
    texts = {"target": target, "device": options["device"], "schedule": schedule, "contract": contract}
    for option, text in texts.items():
        if not isinstance(text, str) and (text is not None or option == "target"):
            raise Usage(f"{option} is {text!r}, not a text", option)
    path_or_bytes: Any = os.fsencode(source) if is_path else source  # type: ignore[arg-type]
    threads = _threads.thread_count(options["threads"])
    _threadpools.register()
    forest: Forest
    forest, messages = Forest._load(
        path_or_bytes,
        is_path,
        schedule,
        contract,
        strict,
        threads,
        target,
        options["device"],
        *rounds,
        contributions,
        keep_leaves,
        interactions,
        approx_contributions,
        borrow,
        background,
        *samples,
    )
    forest._options = options
    forest._names = forest._feature_names
    forest._schema = forest._calls = None
    for message in messages:
        warnings.warn(message, ContractWarning, stacklevel=3)
    return forest
