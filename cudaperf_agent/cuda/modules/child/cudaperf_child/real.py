"""The real device, with the same parts as the emulated one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd.profiler import profile

from .modes import OperatorMode

# Sizes of blocks that the caching allocator keeps: poisoned and let go, they are what a call gets for its outputs.
_POISONED = tuple(1 << k for k in range(9, 27))
_EACH = 4


class RealDevice:
    """The first CUDA device; or the CPU, to try out what needs no kernels.

    Args:
        fill: Byte that recycled memory is filled with.
        name: ``cuda:0`` or ``cpu``.
    """

    def __init__(self, fill: int, name: str = "cuda:0") -> None:
        self._fill = fill
        self.device = torch.device(name)
        self._real = self.device.type == "cuda"
        if self._real:
            torch.cuda.init()

    @contextmanager
    def working(self, log: dict[str, int]) -> Iterator[None]:
        """While the candidate works: names of operators go to `log`."""
        with _Log(log):
            yield

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is on the device."""
        return bool(tensor.device == self.device)

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """New memory, not written."""
        return torch.empty(list(shape), dtype=dtype, device=self.device)

    def put(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor on the device."""
        return tensor.to(self.device)

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """A copy on the host."""
        return tensor.detach().cpu()

    def written(self, tensor: torch.Tensor) -> None:
        """Nobody needs to know."""

    def refresh(self) -> None:
        """Before a call: what the allocator hands out next holds nothing of earlier results."""
        if not self._real:
            return
        blocks = [
            torch.full((size,), self._fill, dtype=torch.uint8, device=self.device)
            for size in _POISONED
            for _ in range(_EACH)
        ]
        torch.cuda.synchronize()
        del blocks

    def finish(self) -> None:
        """Wait for the device, whatever stream the work is on; raises what a kernel did wrong."""
        if self._real:
            torch.cuda.synchronize()

    def activities(self, work: Callable[[], object]) -> list[str]:
        """Names of what ran on the device during `work`, as the profiler saw it.

        Not by ``torch.profiler``: to start that imports the whole of Inductor, which takes seconds.
        """
        with profile(use_cpu=not self._real, use_device="cuda" if self._real else None, use_kineto=True) as seen:
            work()
            self.finish()
        events = seen.function_events or []
        return sorted({e.name for e in events if e.device_type == torch.autograd.DeviceType.CUDA})

    def report(self) -> str:
        """No checker watches."""
        return ""


class _Log(OperatorMode):
    def __init__(self, log: dict[str, int]) -> None:
        super().__init__()
        self._log = log

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        self._log[name] = self._log.get(name, 0) + 1
        return func(*args, **(kwargs or {}))
