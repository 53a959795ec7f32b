import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x, ids, weights):
        picked = torch.gather(x, 1, ids)
        return (picked * weights).sum(1), x.index_select(1, ids[0]).amax(1)


def get_inputs():
    return [torch.randn(40, 60), torch.randint(0, 3, (40, 12)), torch.rand(40, 12)]


SIZES = {(0, 0): (64, 40), (0, 1): (7, 33), (1, 0): (5, 8)}  # which inputs and dimensions take which sizes
