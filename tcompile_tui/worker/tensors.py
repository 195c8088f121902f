"""Tensors of any kind as plain numbers, and a sample of the large ones that is the same in every process."""

from __future__ import annotations

import math

import torch


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """The same values as a plain strided tensor."""
    if tensor.is_nested:
        return tensor.to_padded_tensor(0.0)
    if tensor.is_quantized:
        return tensor.dequantize()
    return tensor if tensor.layout is torch.strided else tensor.to_dense()


def flat(tensor: torch.Tensor) -> torch.Tensor:
    """All values in one row; complex ones as their two parts."""
    tensor = dense(tensor)
    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).flatten()


def stride_for(elements: int, at_most: int) -> int:
    """The step from one sampled element to the next, so that `at_most` are taken. It has no factor in common with
    the number of elements, and so with no dimension: no column of a matrix is left out."""
    stride = max(1, math.ceil(elements / max(1, at_most)))
    while math.gcd(stride, elements) > 1:
        stride += 1
    return stride
