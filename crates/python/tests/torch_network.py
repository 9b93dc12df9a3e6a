"""The network of `resnet18` in PyTorch, its parts named as `Learner.state_dict` names them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    """Convolution, batch norm, ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.bn(self.conv(x)))


class Block(nn.Module):
    """Two layers and a way around them; no ReLU after the sum."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs, eps=1e-6)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs, eps=1e-6)
        if stride != 1 or inputs != outputs:
            self.shortcut = Layer(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = functional.relu(self.bn1(self.conv1(x)))
        around = self.shortcut(x) if hasattr(self, "shortcut") else x
        return functional.relu(self.bn2(self.conv2(inner))) + around


class Encoder(nn.Module):
    """From normalised images [rows, 3, height, width] to features [rows, 8 · width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.stem = Layer(3, width, 3, 1)
        inputs = width
        for group in range(4):
            blocks = nn.Module()
            for block in range(2):
                outputs = width << group
                blocks.add_module(f"block{block}", Block(inputs, outputs, 2 if group > 0 and block == 0 else 1))
                inputs = outputs
            self.add_module(f"group{group + 1}", blocks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        for group in range(1, 5):
            for block in self.get_submodule(f"group{group}").children():
                x = block(x)
        return x.mean((2, 3))
