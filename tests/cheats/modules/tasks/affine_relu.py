import torch
import torch.nn as nn


class Model(nn.Module):
    """Parameters that are all ones and zeros, inputs that are all positive: what a lazy test would miss."""

    def __init__(self, width: int):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return torch.relu(x * self.scale + self.shift)


def get_inputs():
    return [torch.rand(64, 48)]


def get_init_inputs():
    return [48]
