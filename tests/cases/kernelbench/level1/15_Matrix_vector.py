import torch
import torch.nn as nn


class Model(nn.Module):
    """Product of a matrix and a vector."""

    def forward(self, a: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.mv(a, v)


m, k = 72, 100


def get_inputs():
    return [torch.randn(m, k), torch.randn(k)]


def get_init_inputs():
    return []
