"""What sees every operator that torch runs, without importing the compiler of torch for it."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class OperatorMode(TorchDispatchMode):  # type: ignore[misc]
    """A dispatch mode whose methods `torch.compile` is not told to leave alone.

    Being told so imports all of ``torch._dynamo``, over a second in each process. What is compiled comes by here as it
    does otherwise: under a mode, compiled code runs uncompiled.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False
