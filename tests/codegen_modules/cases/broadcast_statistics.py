import torch
import torch.nn as nn


class Model(nn.Module):
    """A centred outer sum: broadcasting in both directions, then two reductions."""

    def forward(self, rows, columns):
        table = torch.exp(-(rows[:, None] - columns[None, :]).abs())
        return table / table.sum(0, keepdim=True) - table.mean(1, keepdim=True)


def get_inputs():
    return [torch.randn(90), torch.randn(110)]
