"""Inputs and state of a case, drawn by seed: what makes a case hard is said by its description."""

from __future__ import annotations

import zlib
from typing import Any

import torch

from .wire import NAMES

CONSTANT = 0.625  # neither 0 nor 1, exact in every type


def generator(*parts: object) -> torch.Generator:
    """A source of random numbers that depends on its parts alone."""
    made = torch.Generator()
    made.manual_seed(zlib.crc32(repr(parts).encode()))
    return made


def inputs_of(case: dict[str, Any], specs: list[dict[str, Any]], seed: int) -> list[Any]:
    """Arguments of ``forward``, contiguous; values that are no tensors are passed on."""
    found: list[Any] = []
    for index, spec in enumerate(specs):
        if spec["kind"] == "value":
            found.append(spec["decoded"])
            continue
        source = generator(seed, case["name"], index)
        dtype = NAMES[case["dtype"]] if spec["floating"] else NAMES[spec["dtype"]]
        found.append(_drawn(spec, case["shapes"][index], case["contents"], source).to(dtype))
    return found


def _drawn(spec: dict[str, Any], shape: list[int], contents: str, source: torch.Generator) -> torch.Tensor:
    if spec["distinct"]:
        values = torch.tensor(spec["distinct"], dtype=torch.float64)
        return values[torch.randint(len(values), shape, generator=source)]
    low, high = spec["low"], spec["high"]
    low, high = (0.0, 1.0) if low is None else (low, high)
    if not spec["floating"]:
        if spec["dtype"] == "bool":
            return torch.randint(0, 2, shape, generator=source)
        return torch.randint(int(low), int(high) + 1, shape, generator=source)
    uniform = torch.rand(shape, generator=source, dtype=torch.float64)
    normal = torch.randn(shape, generator=source, dtype=torch.float64)
    if not spec["open_range"]:
        return low + uniform * (high - low)
    scale = max(abs(low), abs(high), 1e-6) / 4
    if contents == "negative":
        return -scale * normal.abs() - scale / 8
    if contents == "positive":
        return scale * normal.abs() + scale / 8
    if contents == "large":
        return 40 * scale * normal
    if contents == "small":
        return scale * normal / 4096
    if contents == "constant":
        return torch.full(shape, CONSTANT * scale, dtype=torch.float64)
    if contents == "zeros":
        return torch.zeros(shape, dtype=torch.float64)
    if contents == "outlier":
        made = scale * normal
        if made.numel():
            made.view(-1)[torch.randint(made.numel(), (max(1, made.numel() // 64),), generator=source)] *= 200
        return made
    if contents == "shifted":
        return scale * (normal + 12)
    return scale * normal


def state_of(model: torch.nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """A ``state_dict`` without zeros and ones where the module's own has only those; others keep their scale."""
    buffers = {name for name, _ in model.named_buffers()}
    made = {}
    for name, tensor in model.state_dict().items():
        source = generator(seed, "state", name)
        value = tensor.detach().cpu()
        if not value.is_floating_point() or not value.numel():
            made[name] = value.clone()
            continue
        normal = torch.randn(value.shape, generator=source, dtype=torch.float64)
        wide = value.double()
        constant = bool((wide == wide.view(-1)[0]).all()) if wide.dim() else True
        if constant and name in buffers and float(wide.view(-1)[0]) > 0:
            fresh = 0.5 + 1.5 * torch.rand(value.shape, generator=source, dtype=torch.float64)  # a running variance
        elif constant:
            fresh = wide + 0.4 * normal + 0.0625
        elif name in buffers:
            fresh = wide  # a table that was computed: its meaning may depend on its values
        else:
            fresh = wide.mean() + max(float(wide.std()), 1e-3) * normal
        made[name] = fresh.to(value.dtype)
    return made


def laid_out(tensor: torch.Tensor, layout: str, empty: Any = torch.empty) -> torch.Tensor:
    """The same values in memory of another layout: ``contiguous``, ``spaced`` or ``transposed``.

    Args:
        tensor: Contiguous.
        layout: Which.
        empty: Makes memory, as `torch.empty`.
    """
    shape, dtype = list(tensor.shape), tensor.dtype
    if layout == "contiguous" or not shape:
        made = empty(shape, dtype=dtype)
    elif layout == "transposed" and len(shape) > 1:
        swapped = [*shape[:-2], shape[-1], shape[-2]]
        made = empty(swapped, dtype=dtype).transpose(-1, -2)
    else:
        made = empty([*shape[:-1], 2 * shape[-1] + 3], dtype=dtype)[..., 1 : 2 * shape[-1] + 1 : 2]
    made.copy_(tensor)
    return made


def moved(tensor: torch.Tensor, source: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    """Every element moved by one unit in the last place of `dtype`, up or down at random, in double."""
    sign = torch.randint(0, 2, tensor.shape, generator=source).double() * 2 - 1
    return tensor.double() * (1 + sign * torch.finfo(dtype).eps)
