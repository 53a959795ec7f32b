"""The module in double, with every sum off by what float additions one after another, in any order, may be off by.

torch sums pairwise; a plain loop over n terms is as right, and its rounding grows faster with n. With terms x, their
sum S and Q = Σx², the partial sums of a random order have, exactly, the mean

    V = E Σ s_k² = S²·(n+1)(2n+1)/(6n) + (Q − S²/n)·(n+1)/6

and if each addition rounds independently by up to u = 2⁻²⁴ of its result (the model of N. J. Higham and T. Mary, "A new
approach to probabilistic rounding error analysis", 2019), the error's deviation is u·√(V/3). Terms that are all equal
round alike, up to u·Σ|s_k| = u·|S|·(n+1)/2 in all. Accumulators are floats for types narrower than float too.

What is not covered, and has the budget of the other builds alone: every other reduction, among them `logsumexp`,
`vector_norm`, pooling by windows, `mse_loss`, batch norm in training, fused attention.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .modes import OperatorMode

SIGMAS = 8.0
"""Deviations that a right sum may be off by: of a million sums none is expected further off."""
UNIT = 2.0**-24
ALIKE = 2.0**-22
"""Terms that differ by less than this times n of themselves round alike in sums of n floats."""

aten = torch.ops.aten


def _softmax(x: torch.Tensor, dim: int, _half: bool) -> torch.Tensor:
    e = (x - x.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


def _log_softmax(x: torch.Tensor, dim: int, _half: bool) -> torch.Tensor:
    y = x - x.amax(dim, keepdim=True)
    return y - y.exp().sum(dim, keepdim=True).log()


def _moments(x: torch.Tensor, dims: Any, correction: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Variance and mean, dimensions kept."""
    mean = x.mean(dims, keepdim=True)
    count = x.numel() // max(1, mean.numel())
    return ((x - mean) ** 2).sum(dims, keepdim=True) / max(count - correction, 0), mean


def _var(x: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> torch.Tensor:
    dims = list(range(x.dim())) if not dim else [d % x.dim() for d in dim]
    var = _moments(x, dims, 1 if correction is None else float(correction))[0]
    return var if keepdim else var.squeeze(dims)


def _std(x: torch.Tensor, dim: Any = None, **options: Any) -> torch.Tensor:
    return _var(x, dim, **options).sqrt()


def _layer_norm(x: torch.Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[torch.Tensor, ...]:
    var, mean = _moments(x, list(range(x.dim() - len(shape), x.dim())), 0)
    scale = (var + eps).rsqrt()
    y = (x - mean) * scale
    y = y if weight is None else y * weight
    return (y if bias is None else y + bias), mean, scale


def _group_norm(
    x: torch.Tensor, weight: Any, bias: Any, n: int, c: int, _hw: int, groups: int, eps: float
) -> tuple[torch.Tensor, ...]:
    grouped = x.reshape(n, groups, -1)
    var, mean = _moments(grouped, [2], 0)
    scale = (var + eps).rsqrt()
    y = ((grouped - mean) * scale).reshape(x.shape)
    per_channel = [1, c, *([1] * (x.dim() - 2))]
    y = y if weight is None else y * weight.reshape(per_channel)
    return (y if bias is None else y + bias.reshape(per_channel)), mean.squeeze(2), scale.squeeze(2)


_TAKEN_APART: dict[Any, Callable[..., Any]] = {
    aten._softmax.default: _softmax,
    aten._log_softmax.default: _log_softmax,
    aten.native_layer_norm.default: _layer_norm,
    aten.native_group_norm.default: _group_norm,
    aten.var.correction: _var,
    aten.std.correction: _std,
}
_SUMS = frozenset({aten.sum.default, aten.sum.dim_IntList, aten.mean.default, aten.mean.dim})
_PRODUCTS = frozenset({aten.mm.default, aten.bmm.default, aten.mv.default, aten.dot.default})
_WITH_ADDEND: dict[Any, Callable[..., torch.Tensor]] = {
    aten.addmm.default: aten.mm.default,
    aten.baddbmm.default: aten.bmm.default,
}


class AnyOrder(OperatorMode):
    """While it is on, sums of doubles are off by as much as sums of floats may be, up or down at random.

    Args:
        source: Of the directions.
    """

    def __init__(self, source: torch.Generator) -> None:
        super().__init__()
        self._source = source

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The operator's result; see the module's docstring."""
        kwargs = kwargs or {}
        if func in _TAKEN_APART and args[0].dtype == torch.float64 and args[0].dim() and args[0].numel():
            with self:
                return _TAKEN_APART[func](*args, **kwargs)
        result = func(*args, **kwargs)
        if not (isinstance(result, torch.Tensor) and result.dtype == torch.float64 and result.numel()):
            return result
        if func in _SUMS:
            terms = args[0].numel() // result.numel()
            scale = terms if func in (aten.mean.default, aten.mean.dim) else 1
            # The mean's squares come divided by the number of terms, its sum too.
            return (
                result
                + self._off(result * scale, func(args[0].double() ** 2, *args[1:], **kwargs) * scale, terms) / scale
            )
        if func is aten.cumsum.default and result.dim():
            numbers = torch.arange(1, result.shape[args[1]] + 1, dtype=torch.float64, device=result.device)
            numbers = numbers.reshape([-1 if d == args[1] % result.dim() else 1 for d in range(result.dim())])
            return result + self._off(result, func(args[0].double() ** 2, args[1]), numbers)
        if func in _PRODUCTS:
            return result + self._off(result, func(args[0] ** 2, args[1] ** 2), args[0].shape[-1])
        if func in _WITH_ADDEND:
            product, (left, right) = _WITH_ADDEND[func], args[1:3]
            off = self._off(product(left, right), product(left**2, right**2), left.shape[-1])
            return result + off * kwargs.get("alpha", 1)
        if func is aten.convolution.default:
            inputs, weight, rest = args[0], args[1], args[3:]
            transposed = bool(args[6])
            terms = weight.numel() // weight.shape[1 if transposed else 0]
            return result + self._off(func(inputs, weight, None, *rest), func(inputs**2, weight**2, None, *rest), terms)
        return result

    def _off(self, total: torch.Tensor, squares: torch.Tensor, n: Any) -> torch.Tensor:
        """How far sums are off, up or down; `n` terms each, or a tensor of numbers of terms."""
        if isinstance(n, int) and n < 2:
            return torch.zeros_like(total)
        of_total = total**2
        spread = (squares - of_total / n).clamp(min=0)
        partial = of_total * ((n + 1) * (2 * n + 1) / (6 * n)) + spread * ((n + 1) / 6)
        off = SIGMAS * UNIT * (partial / 3).sqrt()
        alike = spread * n <= of_total * ((n * ALIKE) ** 2 + 1e-12)
        off = torch.where(alike, torch.maximum(off, UNIT * total.abs() * (n + 1) / 2), off)
        sign = torch.randint(0, 2, total.shape, generator=self._source).to(total.device).double() * 2 - 1
        return sign * off
