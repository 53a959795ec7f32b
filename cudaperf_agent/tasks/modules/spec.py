"""What is known of a PyTorch module: where its class and inputs are, and what a run of it showed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ModuleMode = Literal["pure-cuda", "libraries-allowed"]
DTYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool")
"""Element types of tensors, by our short names."""
FLOATS = ("f64", "f32", "f16", "bf16")


@dataclass(frozen=True, slots=True)
class InputSpec:
    """One positional argument of ``forward``, as the file's own inputs are.

    Attributes:
        kind: A tensor, or another value that is passed as it is.
        dtype: Of a tensor.
        shape: Of a tensor.
        low, high: Least and largest element seen, `None` for an empty tensor.
        distinct: All values seen, if there are at most four (a mask); else ``()``.
        value: JSON of a value that is no tensor.
        open_range: The module's results stay finite for values outside of what was seen.
    """

    kind: Literal["tensor", "value"]
    dtype: str = ""
    shape: tuple[int, ...] = ()
    low: float | None = None
    high: float | None = None
    distinct: tuple[float, ...] = ()
    value: str = ""
    open_range: bool = False


@dataclass(frozen=True, slots=True)
class StateSpec:
    """One tensor of the module's ``state_dict``."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    buffer: bool = False


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """One tensor that ``forward`` returns, for the inputs of the file at reduced size: its type and rank."""

    name: str
    dtype: str
    rank: int


@dataclass(frozen=True, slots=True)
class Dimension:
    """Dimensions of inputs that can change, all together.

    Attributes:
        size: In the file's own inputs.
        places: Pairs of an input's position and a dimension of it.
        least: Smallest size that the module takes.
    """

    size: int
    places: tuple[tuple[int, ...], ...]
    least: int = 1


@dataclass(frozen=True, slots=True)
class ModuleSpec:
    """A PyTorch module as a task.

    Attributes:
        class_name: The module's class.
        inputs_from: ``get_inputs`` of the file, or a text like ``f32[64,128], i64[64]``.
        has_init_inputs: Whether the file has ``get_init_inputs``.
        mode: What a candidate may call besides its own kernels.
        dtypes: Element types that floating-point inputs and state are tested in; the file's own where empty.
        init: JSON of the constructor's arguments.
        inputs: Arguments of ``forward``.
        state: Its ``state_dict``, in order.
        outputs: What it returns.
        dimensions: What can change in the shapes of the inputs; other dimensions are fixed by the module.
        strided: It takes inputs that are not contiguous.
        reduced: Largest value of a changeable dimension where cases must be small (on the emulator).
        graph: JSON of the operators of ``forward``, for the generator of variants; no part of the task's digest.
        torch: Version of torch that it was run with; empty until it was.
    """

    class_name: str
    inputs_from: str = "get_inputs"
    has_init_inputs: bool = False
    mode: ModuleMode = "pure-cuda"
    dtypes: tuple[str, ...] = ()
    init: str = "[]"
    inputs: tuple[InputSpec, ...] = ()
    state: tuple[StateSpec, ...] = ()
    outputs: tuple[OutputSpec, ...] = ()
    dimensions: tuple[Dimension, ...] = ()
    strided: bool = False
    reduced: int = 0
    graph: str = ""
    torch: str = ""

    @property
    def described(self) -> bool:
        """Whether a run has shown what its inputs, state and outputs are."""
        return bool(self.torch)

    @property
    def own_dtype(self) -> str:
        """The element type of the file's floating-point inputs, of its state where no input has one, else ``f32``."""
        tensors = [*(i.dtype for i in self.inputs), *(s.dtype for s in self.state)]
        return next((d for d in tensors if d in FLOATS), "f32")

    @property
    def tested_dtypes(self) -> tuple[str, ...]:
        """Element types of the tests."""
        return self.dtypes or (self.own_dtype,)

    @property
    def element_types(self) -> tuple[str, ...]:
        """What to tell people of `tested_dtypes`: a module without floating-point tensors has integers only."""
        given = [i.dtype for i in self.inputs if i.kind == "tensor"]
        if given and not any(d in FLOATS for d in (*given, *(s.dtype for s in self.state))):
            return tuple(dict.fromkeys(given))
        return self.tested_dtypes

    @property
    def converted_dtypes(self) -> tuple[str, ...]:
        """Floating-point types of the file's own inputs that the tests convert, since a test has one such type."""
        given = dict.fromkeys(i.dtype for i in self.inputs if i.dtype in FLOATS)
        return tuple(d for d in given if d not in self.tested_dtypes) if len(given) > 1 else ()
