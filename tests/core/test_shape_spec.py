"""Sequences of shapes: files, several values of a size, distributions, and the sizes that they are padded to."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from tcompile_tui.cli_shapes import with_shapes
from tcompile_tui.core.shape_spec import (
    MAX_BATCHES,
    ShapeSequence,
    bucket_sizes,
    choose_buckets,
    is_distribution,
    padded,
    parse_distribution,
    parse_shape_file,
    split_dims,
)
from tcompile_tui.core.spec import Dim, RunSpec, SpecError, command_line, parse_input, parse_target

_SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=30)


@pytest.mark.parametrize(
    "text", ["B,T\n8,37\n8,64\n8,37\n", '# traffic\n{"B": 8, "T": 37}\n\n{"T": 64, "B": 8}\n{"B":8,"T":37}']
)
def test_a_file_has_a_batch_a_line_as_csv_or_json(text: str) -> None:
    sequence = parse_shape_file(text, "traffic")
    assert sequence.names == ("B", "T") and sequence.shapes == ((8, 37), (8, 64)) and sequence.order == (0, 1, 0)
    assert sequence.varying == ("T",)
    assert sequence.words == ("--shapes", "traffic")
    assert sequence.usual == (Dim("B", 8), Dim("T", 37)), "the most frequent one"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no batch"),
        ("B,T\n", "no batch below it"),
        ("8,37\n", "line 1: a header"),
        ("B,B\n1,2\n", "line 1: a header"),
        ("B,T\n8,37\n8\n", "line 3: 2 whole numbers"),
        ("B,T\n8,0\n", "line 2: 2 whole numbers"),
        ("B,T\n8,-1\n", "line 2: 2 whole numbers"),
        ('{"B": 8}\n{"T": 8}\n', "line 2: write"),
        ('{"B": true}\n', "line 1: 1 whole number"),
        ('{"B": \n', "line 1: write"),
        ("B\n" + "8\n" * (MAX_BATCHES + 1), "at most 4,000"),
    ],
)
def test_what_is_wrong_in_a_file_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        parse_shape_file(text, "seq.csv")


@given(st.text())
def test_any_text_is_a_sequence_or_one_clear_line(text: str) -> None:
    for read in (parse_distribution, lambda each: parse_shape_file(each, "f")):
        try:
            assert read(text).sound
        except SpecError as error:
            assert str(error)


def test_several_values_of_sizes_make_every_combination() -> None:
    single, sequence = split_dims(["B=8,16", "H=3", "T=1,2"])
    assert single == ["H=3"] and sequence is not None
    assert sequence.shapes == ((8, 1), (8, 2), (16, 1), (16, 2)) and sequence.order == (0, 1, 2, 3)
    assert split_dims(["H=3"]) == (["H=3"], None)
    for wrong in ("B=8,", "B=8,x", "=1,2", "B=0,1"):
        with pytest.raises(SpecError, match="--dim B=8,16,32"):
            split_dims([wrong])


def test_a_distribution_is_drawn_the_same_each_time() -> None:
    sequence = parse_distribution("B=1:3,8:1;T=16..18")
    assert sequence == parse_distribution("B=1:3,8:1;T=16..18")
    batches = Counter(sequence.shapes[number][0] for number in sequence.order)
    assert set(batches) == {1, 8} and 2 < batches[1] / batches[8] < 4.5
    assert {shape[1] for shape in sequence.shapes} == {16, 17, 18}
    assert is_distribution("B=1,2") and not is_distribution("a/b=1.csv") and not is_distribution("seq.csv")


@given(_SIZES, st.integers(1, 4))
def test_buckets_pad_as_little_as_any_choice(sizes: list[int], most: int) -> None:
    def cost(buckets: tuple[int, ...]) -> int:
        return sum(min(bucket for bucket in buckets if bucket >= size) - size for size in sizes)

    chosen = choose_buckets(sizes, most)
    assert len(chosen) <= most and chosen[-1] == max(sizes)
    others = list(combinations(sorted(set(sizes) - {max(sizes)})[:12], min(most - 1, len(set(sizes)) - 1)))
    assert all(cost(chosen) <= cost((*other, max(sizes))) for other in others)


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=2, max_size=40))
def test_padding_never_cuts_a_size_and_leaves_few_shapes(batches: list[tuple[int, int]]) -> None:
    sequence = ShapeSequence.of(("B", "T"), batches)
    wide = padded(sequence)
    for before, after in zip(sequence.order, wide.order, strict=True):
        assert all(b >= a for a, b in zip(sequence.shapes[before], wide.shapes[after], strict=True))
    assert len(wide.shapes) <= 4 and set(bucket_sizes(sequence)) == set(sequence.varying)


# ---------------------------------------------------------------- beside the other options


def _with(tmp_path: Path, dims: tuple[str, ...] = (), shapes: str | None = None, **changes: object) -> RunSpec:
    spec = RunSpec(parse_target("net.py"), **{"inputs": (parse_input("x=float32[B,T]"),), **changes})  # type: ignore[arg-type]
    return with_shapes(spec, {"dims": dims, "shapes": shapes, "cwd": tmp_path})


def test_the_usual_shape_is_measured_and_the_command_says_what_was_typed(tmp_path: Path) -> None:
    (tmp_path / "seq.csv").write_text("T\n5\n7\n7\n")
    spec = _with(tmp_path, ("B=8",), "seq.csv")
    assert spec.dims == (Dim("B", 8), Dim("T", 7))
    assert command_line(spec) == "tcompile-tui run net.py --input 'x=float32[B,T]' --dim B=8 --shapes seq.csv"
    several = _with(tmp_path, ("B=8,16", "T=4"))
    assert command_line(several).endswith("--dim T=4 --dim B=8,16") and several.shapes is not None


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"dims": ("B=8,16",), "shapes": "T=1..4"}, "not both"),
        ({"dims": ("T=8",), "shapes": "T=1..4"}, "'T' is given twice"),
        ({"shapes": "T=4"}, "names one shape"),
        ({"shapes": "T=1..4", "inputs": ()}, "add --input 'x=float32"),
        ({"shapes": "T=1..4", "inputs": (), "inputs_from": "b.pt"}, "has no use with --inputs b.pt"),
    ],
)
def test_what_cannot_be_replayed_is_refused(options: dict[str, object], told: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=told):
        _with(tmp_path, **options)  # type: ignore[arg-type]


def test_a_file_that_cannot_be_read_ends_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        _with(tmp_path, shapes="none.csv")
    assert left.value.code == 2 and "none.csv cannot be read: No such file" in capsys.readouterr().err
