"""Three habits that split a graph: a print, a branch on `.item()`, and a call into numpy.

What tcompile-tui should find: four graphs with three breaks between them, each with its file, line and
remedy. Every break costs another set of guards and ends fusion, so compiling does not pay. On a GPU breaks
2 and 3 also wait for the device in every step, as they do in eager mode.
"""

import numpy
import torch
from torch import nn

BATCH = 64
WIDTH = 256


class ChattyNet(nn.Module):
    """An MLP that reports, checks and rescales its activations on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(WIDTH, WIDTH)
        self.second = nn.Linear(WIDTH, WIDTH)
        self.third = nn.Linear(WIDTH, WIDTH)
        self.fourth = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).relu()
        print("activations:", tuple(x.shape))  # break 1: output; log outside the model, or not in every step
        x = self.second(x).relu()
        if x.isfinite().all().item():  # break 2: Python needs the value; use torch.where, or check elsewhere
            x = self.third(x).relu()
        values = x.detach().float().cpu().numpy()
        peaks = numpy.nanmax(values, axis=0)  # break 3: Dynamo does not know this one; use torch.amax
        return self.fourth(x / (1 + torch.from_numpy(peaks).to(x)))


def example_inputs() -> tuple[torch.Tensor]:
    return (torch.randn(BATCH, WIDTH),)
