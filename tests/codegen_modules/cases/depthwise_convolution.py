import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depth = nn.Conv1d(channels, channels, 5, padding=2, groups=channels)
        self.mix = nn.Conv1d(channels, 2 * channels, 1)

    def forward(self, x):
        return F.glu(self.mix(F.silu(self.depth(x))), dim=1)


def get_inputs():
    return [torch.randn(3, 8, 64)]


def get_init_inputs():
    return [8]
