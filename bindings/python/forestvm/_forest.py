"""Defines Forest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from . import _arguments, _core
from ._errors import UnsupportedInput

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
    early_stop: tuple[float, int] = (0.0, 0)  # the margin, and the rounds from one test to the next; 0: no early stop


class Forest(_core.Forest):
    """A model that is ready to predict. It never changes, and any number of threads may use it at once.

    `load`, `from_xgboost`, `from_lightgbm`, `from_sklearn` and `from_catboost` make one.
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
        averaged: bool = ...,
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
        averaged: bool = ...,
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
        averaged: bool = False,
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
        averaged: divides the numbers of a forest that averages its trees (LightGBM's `rf`, scikit-learn's forests) by
                  the number of its rounds: they then add up to the mean. Otherwise they add up to the raw score, the
                  sum, as LightGBM's own do.

        The other options are those of `predict`.
        """
        from . import _terms

        return _terms.predict(
            self,
            _terms.Terms("contributions", 1, features, top),
            X,
            out=out,
            dtype=dtype,
            missing=missing,
            columns=columns,
            extra=extra,
            base_margin=base_margin,
            averaged=averaged,
        )

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
        averaged: bool = ...,
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
        averaged: bool = ...,
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
        averaged: bool = False,
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
        base_margin, averaged: see `contributions`.

        The other options are those of `predict`.
        """
        from . import _terms

        return _terms.predict(
            self,
            _terms.Terms("interactions", 2, features, top, max_bytes),
            X,
            out=out,
            dtype=dtype,
            missing=missing,
            columns=columns,
            extra=extra,
            base_margin=base_margin,
            averaged=averaged,
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
        averaged: bool = ...,
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
        averaged: bool = ...,
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
        averaged: bool = False,
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[Any]]:
        """Returns changes of the mean score at the splits of each feature on a row's way: XGBoost's `approx_contribs`.

        The array has the shape of `contributions`, and the numbers add up to the raw score likewise. The forest must
        have been loaded with `approx_contributions=True`. The options are those of `contributions`.
        """
        from . import _terms

        return _terms.predict(
            self,
            _terms.Terms("approx-contributions", 1, features, top),
            X,
            out=out,
            dtype=dtype,
            missing=missing,
            columns=columns,
            extra=extra,
            base_margin=base_margin,
            averaged=averaged,
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
        from . import _proximity

        return _proximity.compare(self, X, Y, top, weights, missing=missing, columns=columns, extra=extra)

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

        It has raw scores, values, classes, trees, stages, contributions and interactions. The forest must have been
        loaded with `keep_leaves=True`. Only the trees of these rounds are walked, unless the schedule has `orderTrees`.
        `save` writes all rounds; `load(..., rounds=(begin, end))` makes a program that has these alone.
        """
        return self._with_calls(rounds=_arguments.rounds_of((begin, end)))

    def of_quantiles(self, quantiles: Iterable[float]) -> Forest:
        """Returns a forest of the same program whose predictions with `output="quantile"` are these quantiles.

        quantiles: numbers from 0 to 1; forests have 0.1, 0.5 and 0.9 otherwise. `Forest.quantiles` takes other ones in
        each call. The forest must have been loaded with `samples=(X, y)`.
        """
        import numpy

        no_rows = numpy.empty((0, self.num_features), numpy.float32)
        self.predict(no_rows, output="quantile")  # fails here if the forest has no samples
        return self._with_calls(quantiles=_arguments.quantiles_of(quantiles))

    def _by_output(self, flat: NDArray[Any]) -> NDArray[Any]:
        """Returns an array of raw scores after each other in the shape (rows, ..., outputs)."""
        return flat.reshape(len(flat), flat.shape[1] // self.num_outputs, self.num_outputs)

    def _kept_calls(self, **options: Any) -> Forest:
        """Returns a forest whose calls have these options, which are those of `_Calls`. The last one is kept, so that
        its memory serves the next call, too."""
        asked = _Calls(**options)
        if asked == _Calls():
            return self
        last = self._calls  # read once, because another thread may replace it
        if last is None or last[0] != asked:
            last = self._calls = (asked, self._with_calls(asked))
        return last[1]

    def _with_calls(self, asked: _Calls = _Calls(), **chosen: Any) -> Forest:
        """Returns a forest whose calls have these options, and what is chosen for it, which pickles keep: `rounds` or
        `quantiles`. What this forest has chosen stays."""
        import numpy

        options = {**self._options, **chosen}
        features = numpy.array(asked.features, numpy.uint32)
        quantiles = numpy.array(asked.quantiles or options.get("quantiles", ()), numpy.float64)
        begin, end = options.get("rounds", (0, 0))
        calls: Forest = self._calling(
            begin, end, asked.every, asked.ensembles, features, quantiles, *asked.early_stop
        )
        calls._options = options
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
        early_stop: Mapping[str, float] | None = None,
    ) -> PredictionStream:
        """Predicts a stream or table of Arrow batch by batch, as its consumer asks for them.

        The options are those of `predict`.
        """
        from . import _rows
        from ._prediction_stream import PredictionStream

        if not hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__arrow_c_array__"):
            raise UnsupportedInput(f"{type(X).__name__} gives no Arrow stream", "X")
        calls = self if early_stop is None else self._kept_calls(early_stop=_arguments.early_stop_of(early_stop))
        return PredictionStream(calls, X, output, name, _rows.missing_number(missing), columns, extra, base_margin)

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
        from . import _load

        return _load.open_model(buffer, {"threads": threads, "target": target, "device": device}, borrow=True)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        from . import _load

        if protocol >= 5:
            import pickle

            return _load.restored, (pickle.PickleBuffer(self), self._options)
        return _load.restored, (bytes(self), self._options)

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
