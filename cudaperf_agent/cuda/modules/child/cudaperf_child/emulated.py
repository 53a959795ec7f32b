"""A CUDA device that is the emulator: tensors in its memory say that they are on ``cuda:0``, and torch works on them.

The emulator's memory is ordinary memory of this process, so every operator of torch for the CPU can read and write it.
Two modes make it a device: one rewrites what names a device, the other puts each result of an operator on a tensor of
the device into the emulator's memory, which is poisoned when it is new and known to the checker.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_iter, tree_map

from .modes import OperatorMode

_TO_DEVICE, _TO_HOST = 1, 2  # cudaMemcpyKind
_CAPABILITY = (9, 0)
# What leaves memory unwritten; with a device of their own as argument or not.
_UNWRITTEN = frozenset(
    f"aten::{name}"
    for name in ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "set_")
)


class EmulatedDevice:
    """Memory of the emulator.

    Args:
        runtime: The emulator's library.
        fill: Byte that new memory is filled with.
    """

    def __init__(self, runtime: str, fill: int) -> None:
        self._library = ctypes.CDLL(runtime, mode=ctypes.RTLD_GLOBAL)
        self._library.cudaperf_emulator_report.restype = ctypes.c_char_p
        self._library.emu_malloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_int]
        self._library.cudaMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        self._library.cudaFree.argtypes = [ctypes.c_void_p]
        self._fill = fill
        self._blocks: set[int] = set()

    @contextmanager
    def working(self, log: dict[str, int]) -> Iterator[None]:
        """While the candidate works: names of operators go to `log`, results to where they belong."""
        with _Placement(self, log) as placement, _VirtualCuda(self, placement, log):
            yield

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on the device. One without elements is everywhere."""
        storage = tensor.untyped_storage()
        return not storage.nbytes() or storage.data_ptr() in self._blocks

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """New memory, not written."""
        like = torch.empty(list(shape), dtype=dtype)
        return self._adopt(like, written=False)

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the device."""
        with _plain():
            return tensor if self.holds(tensor) else self._adopt(tensor, written=True)

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy on the host, by the emulator's own copy, which tells if some of it was never written."""
        with _plain():
            tensor = tensor.detach()
            if not tensor.numel():
                return tensor.clone()
            if not tensor.is_contiguous():
                return self._lifted(tensor)
            made = torch.empty(tensor.shape, dtype=tensor.dtype)
            size = tensor.numel() * tensor.element_size()
            self._library.cudaMemcpy(made.data_ptr(), tensor.data_ptr(), size, _TO_HOST)
            return made

    def written(self, tensor: torch.Tensor) -> None:
        """Tell the checker that the host wrote a tensor; with gaps in its memory, all of the memory."""
        storage = tensor.untyped_storage()
        at, size = storage.data_ptr(), storage.nbytes()
        if tensor.is_contiguous():
            at, size = tensor.data_ptr(), tensor.numel() * tensor.element_size()
        if size:
            now = ctypes.create_string_buffer(ctypes.string_at(at, size), size)
            self._library.cudaMemcpy(at, ctypes.addressof(now), size, _TO_DEVICE)

    def refresh(self) -> None:
        """Before a call: new memory is poisoned when it is made, so nothing is to be done."""

    def finish(self) -> None:
        """Nothing runs on when a call has returned."""

    def report(self) -> str:
        """What the checker found since the last time."""
        return bytes(self._library.cudaperf_emulator_report()).decode("utf-8", "replace")

    def _lifted(self, tensor: torch.Tensor) -> torch.Tensor:
        """On the host, layout and all."""
        source = tensor.untyped_storage()
        made = torch.empty(source.nbytes() // tensor.element_size(), dtype=tensor.dtype)
        self._library.cudaMemcpy(made.data_ptr(), source.data_ptr(), source.nbytes(), _TO_HOST)
        return made.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _adopt(self, tensor: torch.Tensor, *, written: bool) -> torch.Tensor:
        """The same tensor in memory of the device: layout kept, contents too where they were written."""
        tensor = tensor.detach()
        source = tensor.untyped_storage()
        size = source.nbytes()
        if not size:
            return tensor
        address = ctypes.c_void_p()
        if self._library.emu_malloc(ctypes.byref(address), size, 0) or address.value is None:
            raise torch.OutOfMemoryError("the emulator's device memory is used up")
        at = address.value
        ctypes.memset(at, self._fill, size)
        if written:
            self._library.cudaMemcpy(at, source.data_ptr(), size, _TO_DEVICE)
        # A class of its own, since plain arrays of ctypes cannot be watched for their end.
        kind: Any = type("Block", (ctypes.c_char * size,), {})
        block = kind.from_address(at)
        self._blocks.add(at)
        weakref.finalize(block, self._release, at).atexit = False
        whole = torch.frombuffer(block, dtype=torch.uint8).untyped_storage()
        return torch.empty(0, dtype=tensor.dtype).set_(whole, tensor.storage_offset(), tensor.shape, tensor.stride())

    def _release(self, address: int) -> None:
        self._blocks.discard(address)
        self._library.cudaFree(address)


@contextmanager
def _plain() -> Iterator[None]:
    """Tensors as they are, whatever modes are on."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


class _Placement(OperatorMode):
    """Results of operators on tensors of the device stay on the device."""

    def __init__(self, device: EmulatedDevice, log: dict[str, int]) -> None:
        super().__init__()
        self._device = device
        self._log = log
        self.wanted: str | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        self._log[name] = self._log.get(name, 0) + 1
        result = func(*args, **(kwargs or {}))
        given = [a for a in tree_iter((args, kwargs)) if isinstance(a, torch.Tensor)]
        here = any(self._device.holds(a) and a.numel() for a in given)
        if self.wanted == "cuda" or (self.wanted is None and here):
            writes = func._schema.is_mutable and name not in _UNWRITTEN
            return tree_map(lambda r: self._placed(r, name, writes) if isinstance(r, torch.Tensor) else r, result)
        return result

    def _placed(self, tensor: torch.Tensor, name: str, writes: bool) -> torch.Tensor:
        if not self._device.holds(tensor):
            return self._device._adopt(tensor, written=name not in _UNWRITTEN)
        if writes:
            self._device.written(tensor)
        return tensor


class _VirtualCuda(TorchFunctionMode):  # type: ignore[misc]
    """Whatever asks for a device, or names one, sees ``cuda:0`` where the emulator's memory is."""

    def __init__(self, device: EmulatedDevice, placement: _Placement, log: dict[str, int]) -> None:
        super().__init__()
        self._device = device
        self._placement = placement
        self._log = log

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func == torch.Tensor.is_cuda.__get__:
            return self._device.holds(args[0])
        if func == torch.Tensor.device.__get__:
            return torch.device("cuda", 0) if self._device.holds(args[0]) else torch.device("cpu")
        name = getattr(func, "__name__", "")
        if name == "get_device":
            return 0 if self._device.holds(args[0]) else -1
        if name in ("tolist", "numpy", "__array__"):
            self._log[f"Tensor.{name}"] = self._log.get(f"Tensor.{name}", 0) + 1
        if name == "cuda":
            return self._device.put(args[0])
        if name == "cpu":
            return self._device.take(args[0]) if self._device.holds(args[0]) else args[0]
        args, wanted = _without_device(name, list(args), kwargs)
        outer, self._placement.wanted = self._placement.wanted, wanted
        try:
            result = func(*args, **kwargs)
        finally:
            self._placement.wanted = outer
        if wanted == "cuda" and isinstance(result, torch.Tensor):
            return self._device.put(result)
        if wanted == "cpu" and name == "to" and self._device.holds(result):
            return self._device.take(result)
        return result


def _without_device(name: str, args: list[Any], kwargs: dict[str, Any]) -> tuple[list[Any], str | None]:
    """Arguments with every device replaced by the CPU, and the kind of device that was asked for."""
    wanted = None
    if kwargs.get("device") is not None:
        wanted = _kind(kwargs["device"])
        kwargs["device"] = "cpu"
    elif name == "to":
        for index, value in enumerate(args[1:], 1):
            if isinstance(value, str | torch.device) or (isinstance(value, int) and not isinstance(value, bool)):
                wanted = _kind(value)
                args[index] = "cpu"
                break
    return args, wanted


def _kind(device: Any) -> str:
    return "cuda" if isinstance(device, int) else torch.device(device).type


def pretend_cuda() -> None:
    """Make the parts of ``torch.cuda`` that a module calls answer for the emulator."""

    class Stream:
        cuda_stream = 0
        device = torch.device("cuda", 0)

        def synchronize(self) -> None:
            """Nothing runs on."""

        def query(self) -> bool:
            """All is done."""
            return True

    class Guard:
        def __init__(self, *_: object) -> None:
            pass

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            pass

    cuda: Any = torch.cuda
    answers = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda *_: _CAPABILITY,
        "get_device_name": lambda *_: "CPU emulator",
        "current_stream": lambda *_: Stream(),
        "default_stream": lambda *_: Stream(),
        "synchronize": lambda *_: None,
        "set_device": lambda *_: None,
        "empty_cache": lambda: None,
        "device": Guard,
        "device_of": Guard,
    }
    for name, answer in answers.items():
        setattr(cuda, name, answer)
