import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, smoothing):
        super().__init__()
        self.smoothing = smoothing

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, label_smoothing=self.smoothing, reduction="none")


def get_inputs():
    return [torch.randn(96, 50), torch.randint(0, 50, (96,))]


def get_init_inputs():
    return [0.1]


SIZES = {(0, 1): (50, 64, 61)}  # which inputs and dimensions take which sizes
