import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x):
        return self.norm(x) * 0.5 + x


def get_inputs():
    return [torch.randn(4, 6, 17, 19)]


def get_init_inputs():
    return [6]
