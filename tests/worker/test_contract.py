"""This torch gives every signal that the worker reads: a private name that moved is named here."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from .contract import NOT_AVAILABLE, Contract, check_contract
from .signals import SIGNALS

pytestmark = pytest.mark.xdist_group("torch")


def test_every_signal_arrives_as_expected() -> None:
    contract = check_contract(sys.executable)
    assert contract.broken() == {}, f"signals of torch {contract.torch} that moved"
    assert contract.capabilities == ("trace", "callbacks")


def test_a_signal_may_be_missing_only_before_the_release_that_brought_it() -> None:
    given = Contract("2.13.0+cpu", "3.11", (), {signal.name: "yes" for signal in SIGNALS})
    assert given.broken() == {}
    without_id = replace(given, outcomes={**given.outcomes, "break: id": NOT_AVAILABLE})
    assert without_id.broken() == {"break: id": NOT_AVAILABLE}
    assert replace(without_id, torch="2.8.0+cu128").broken() == {}
    wrong = replace(without_id, torch="2.8.0", outcomes={**given.outcomes, "break: id": "differs: '0'"})
    assert list(wrong.broken()) == ["break: id"], "missing, but never something else"
    lost = replace(given, outcomes={"break: id": "yes"})
    assert len(lost.broken()) == len(SIGNALS) - 1
