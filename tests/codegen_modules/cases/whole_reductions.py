import torch
import torch.nn as nn


class Model(nn.Module):
    """Scalars of a whole tensor, and it divided by its norm."""

    def forward(self, x):
        return x / torch.norm(x), x.max(), x.argmax(), x.mean()


def get_inputs():
    return [torch.randn(200, 130)]
