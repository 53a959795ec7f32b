import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, x):
        n, c, h, w = x.shape
        mixed = x.view(n, self.groups, c // self.groups, h, w).transpose(1, 2).reshape(n, c, h, w)
        padded = F.pad(mixed, (1, 2, 0, 1), value=0.5)
        return torch.stack((padded, padded.flip(3)), dim=1)[:, :, ::2]


def get_inputs():
    return [torch.randn(3, 6, 9, 10)]


def get_init_inputs():
    return [3]


SIZES = {(0, 1): (3, 6, 9)}  # which inputs and dimensions take which sizes
