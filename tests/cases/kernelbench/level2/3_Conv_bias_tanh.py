import torch
import torch.nn as nn


class Model(nn.Module):
    """A convolution and its hyperbolic tangent."""

    def __init__(self, channels: int, out: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel_size=3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.conv(x))


batch, channels, out, size = 2, 3, 4, 12


def get_inputs():
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return [channels, out]
