from collections.abc import Mapping, Sequence
from typing import Any, Literal, final
from typing_extensions import Buffer, Self, TypeAlias, disjoint_base

import numpy
from numpy.typing import DTypeLike, NDArray

__version__: str

_Output: TypeAlias = Literal[
    "value", "raw", "class", "leaf", "proba", "contributions", "trees", "staged", "interactions", "approx-contributions",
    "virt-ensembles", "uncertainty", "quantile"
]

# A test: the feature, the least number that goes right, the categories that go right (one of these two is None),
# whether missing values go left, and the two children. A child is the index of a test, or the complement (~) of the
# index of a leaf.
_Node: TypeAlias = tuple[int, float | None, tuple[int, ...] | None, bool, int, int]
# A leaf: the trainer's number, the values that it adds to the tree's output or to each output, and None or a linear
# function: the constant and (feature, coefficient) terms. A leaf with a function adds its value instead if one of the
# function's features is missing.
_Leaf: TypeAlias = tuple[int, tuple[float, ...], tuple[float, list[tuple[int, float]]] | None]

@disjoint_base
class Forest:
    """A loaded program. forestvm.Forest derives its public interface from it."""

    def predict(
        self,
        X: Any,
        *,
        output: _Output | str = "value",
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        base_margin: Any = None,
        early_stop: Mapping[str, float] | None = None,
    ) -> NDArray[Any]: ...
    def predict_raw(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        base_margin: Any = None,
        early_stop: Mapping[str, float] | None = None,
    ) -> NDArray[Any]: ...
    def predict_class(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        base_margin: Any = None,
        early_stop: Mapping[str, float] | None = None,
    ) -> NDArray[Any]: ...
    def predict_proba(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
        base_margin: Any = None,
        early_stop: Mapping[str, float] | None = None,
    ) -> NDArray[Any]: ...
    def apply(
        self,
        X: Any,
        *,
        out: NDArray[Any] | None = None,
        dtype: DTypeLike | None = None,
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
    ) -> NDArray[Any]: ...
    def predict_one(
        self,
        X: Any,
        *,
        output: _Output | str = "value",
        missing: float | None = None,
        columns: str = "name",
        extra: str = "error",
    ) -> Any: ...
    @property
    def num_features(self) -> int: ...
    @property
    def num_trees(self) -> int: ...
    @property
    def num_outputs(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def contract(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def trainer(self) -> str: ...
    @property
    def trainer_version(self) -> str: ...
    @property
    def objective(self) -> str: ...
    @property
    def schedule(self) -> str: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...

    _feature_names: tuple[str, ...]
    _classes: tuple[str, ...]
    _category_tables: list[tuple[int, tuple[str, ...], float | None]]
    _ambiguous_features: list[int]
    _hashed_features: list[int]
    _zero_missing: list[int]
    _derived_columns: tuple[str, ...]
    _encoder: tuple[int, int]
    _row_dtype: str
    _number_dtype: str
    _probabilities: str
    _leaf_width: int
    _margin_rows: int
    _averaged_rounds: float

    @classmethod
    def _load(
        cls,
        source: Buffer,
        is_path: bool,
        schedule: str | None,
        contract: str | None,
        strict: bool,
        threads: int,
        target: str,
        device: str | None,
        first_round: int,
        end_round: int,
        contributions: bool,
        keep_leaves: bool,
        interactions: bool,
        approx_contributions: bool,
        borrow: bool,
        background: NDArray[numpy.float64] | None,
        sample_rows: NDArray[numpy.float64] | None,
        sample_targets: NDArray[numpy.float64] | None,
        for_rows: Buffer,
        for_threads: int,
        /,
    ) -> tuple[Any, list[str]]: ...
    def _calling(
        self,
        first_round: int,
        end_round: int,
        every: int,
        ensembles: int,
        features: NDArray[numpy.uint32],
        quantiles: NDArray[numpy.float64],
        stop_margin: float,
        stop_every: int,
        /,
    ) -> Any: ...
    def _with_margins(self, margins: NDArray[Any], /) -> Any: ...
    def _tree(self, number: int, /) -> tuple[int | None, int, list[_Node], list[_Leaf]]: ...
    def _save(self, path: bytes, /) -> None: ...
    def _new_result(self, rows: int, output: str, out: NDArray[Any] | None, dtype: DTypeLike | None, /) -> NDArray[Any]: ...
    def _predict_csr(
        self,
        offsets: NDArray[numpy.int64],
        columns: NDArray[numpy.int32],
        values: NDArray[Any],
        absent_is_zero: bool,
        output: str,
        out: NDArray[Any],
        /,
    ) -> NDArray[Any]: ...
    def _predict_columns(self, columns: list[Any], rows: int, output: str, out: NDArray[Any], /) -> NDArray[Any]: ...
    def _predict_blocks(
        self,
        blocks: list[Any],
        numbers: NDArray[numpy.intp],
        block_rows: NDArray[numpy.intp],
        output: str,
        out: NDArray[Any] | None,
        dtype: DTypeLike | None,
        /,
    ) -> Any: ...
    def _predict_arrow(
        self,
        X: Any,
        output: str,
        out: NDArray[Any] | None,
        dtype: DTypeLike | None,
        missing: float | None,
        columns: str | None,
        extra: str | None,
        /,
    ) -> NDArray[Any]: ...
    def _predict_device(
        self,
        address: int,
        rows: int,
        stride: int,
        device: int,
        stream: int,
        output: str,
        out: int,
        dtype: DTypeLike,
        /,
    ) -> None: ...
    def _stream(
        self, X: Any, output: str, name: str, missing: float | None, columns: str, extra: str, /
    ) -> object: ...
    def _category_numbers(
        self, feature: int, categories: Sequence[Any], out: NDArray[numpy.float64], /
    ) -> tuple[int, str] | None: ...
    def _encode(
        self,
        encoded: EncodedRows,
        rows: NDArray[Any] | tuple[NDArray[numpy.int64], NDArray[numpy.int32], NDArray[Any], bool],
        begin: int,
        /,
    ) -> None: ...
    def _encode_arrow(self, X: Any, missing: float | None, columns: str, extra: str, /) -> EncodedRows: ...

@final
class EncodedRows:
    """Codes of rows, made by Forest.encode, which predictions take in place of the rows."""

    def __new__(cls, rows: int, columns: int, encoder: int, codes: Buffer | None, /) -> Self: ...
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    @property
    def num_columns(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def encoder(self) -> int: ...

def limit_threads(limit: int, /) -> None: ...
def thread_limit() -> int: ...
def read_dlpack(capsule: object, /) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, str, int, int, bool]: ...
def share_leaves(
    leaves: NDArray[numpy.int32],
    others: NDArray[numpy.int32] | None,
    out: NDArray[numpy.int32] | NDArray[numpy.float64],
    rows: NDArray[numpy.int64] | None,
    /,
) -> None: ...
def is_direct(array: object, features: int, /) -> bool: ...
def has_large(array: NDArray[numpy.float64], /) -> bool: ...
