"""Which classes of a file are models, by what they inherit from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcompile_tui.core.discover import CandidateKind, find_candidates

from .discovering import FORWARD, pick, picked, write


@pytest.mark.parametrize(
    ("imports", "base"),
    [
        ("import torch", "torch.nn.Module"),
        ("import torch.nn", "torch.nn.Module"),
        ("import torch as t", "t.nn.Module"),
        ("import torch.nn as nn", "nn.Module"),
        ("from torch import nn as tnn", "tnn.Module"),
        ("from torch.nn import Module", "Module"),
        ("from torch.nn import Module as M", "M"),
        ("from torch.nn import *", "Module"),
        ("from torch.nn.modules.module import Module", "Module"),
        ("from torch import nn\nBase = nn.Module", "Base"),
        ("from torch import nn\nfrom typing import Generic, TypeVar\nT = TypeVar('T')", "nn.Module, Generic[T]"),
        ("import lightning.pytorch as pl", "pl.LightningModule"),
        ("from pytorch_lightning import LightningModule", "LightningModule"),
        ("from transformers import PreTrainedModel", "PreTrainedModel"),
        ("from .base import Backbone", "Backbone"),
        ("import base", "base.Backbone"),
        ("from base import *", "Backbone"),
    ],
)
def test_every_way_to_name_the_base_makes_a_model(tmp_path: Path, imports: str, base: str) -> None:
    result = pick(tmp_path, f"{imports}\nclass Net({base}):{FORWARD}")
    assert result.candidate.kind is CandidateKind.CLASS
    assert result.candidate.name == result.qualified_name == "Net"


@pytest.mark.parametrize(
    "base", ["nn.Sequential", "nn.Linear", "nn.modules.conv.Conv2d", "BertModel", "ResNet", "Parent"]
)
def test_a_base_that_brings_its_own_forward_needs_none_in_the_file(tmp_path: Path, base: str) -> None:
    source = f"""
        from torch import nn
        from transformers import BertModel
        from torchvision.models.resnet import ResNet
        class Parent(nn.Module):
            def forward(self, x): return x
        class Child({base}):
            def __init__(self): super().__init__()
    """
    names = {candidate.name: candidate.note for candidate in find_candidates(write(tmp_path, source))}
    assert names["Child"] is None


@pytest.mark.parametrize(
    "base",
    ["object", "Function", "Dataset", "torch.autograd.Function", "ABC", "Enum", "Exception", "nn.Parameter"],
)
def test_other_classes_with_a_forward_are_no_models(tmp_path: Path, base: str) -> None:
    source = f"""
        import torch
        from abc import ABC
        from enum import Enum
        from torch import nn
        from torch.autograd import Function
        from torch.utils.data import Dataset
        class Helper({base}):
            def forward(self, x): return x
    """
    assert find_candidates(write(tmp_path, source)) == []


def test_a_forward_may_be_assigned_and_a_class_may_stand_inside_a_try(tmp_path: Path) -> None:
    source = """
        from torch import nn
        try:
            class Net(nn.Module):
                def _run(self, x): return x
                forward = _run
        except ImportError:
            pass
    """
    assert picked(tmp_path, source) == "Net"


def test_a_class_that_replaces_a_failed_import_keeps_its_heirs(tmp_path: Path) -> None:
    source = """
        from torch import nn
        try:
            from fast import Base
        except ImportError:
            class Base(nn.Module):
                def forward(self, x): return x
        class Net(Base):
            pass
    """
    assert picked(tmp_path, source) == "Net"
