"""What the program must say of each case: its exit status, and words of its answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Case:
    """One model file with its options. `pattern` is searched for in the answer (see `Outcome.answer`); a case
    without `status` must only come to a named end. `{cases}` in an argument is the folder of the cases."""

    name: str
    file: str
    status: int | None = None
    pattern: str = ""
    arguments: tuple[str, ...] = ()


_COMPARED = "of eager speed"

CASES = (
    Case("C01", "C01_tiny_mlp.py", 0, r"^(SKIP|TEST CAREFULLY)"),
    Case("C02", "C02_pointwise_chain_win.py", 0, r"^ENABLE|host-contended"),
    Case("C04", "C04_many_item_breaks.py", 0, r"^RAN EAGER.*C04_many_item_breaks\.py:1\d"),
    Case("C06", "C06_branch_on_tensor.py", 0, r"graph-break.*C06_branch_on_tensor\.py:11"),
    Case("C07", "C07_print_in_forward.py", 0, r"graph-break.*C07_print_in_forward\.py:12"),
    Case("C09", "C09_numpy_in_forward.py", 0, r"graph-break.*C09_numpy_in_forward\.py:1[3-6]"),
    Case("C11", "C11_disabled_submodule.py", 0, r"graph-break.*disable"),
    Case("C13", "C13_variable_seq_len.py", 0, r"dynamic-shapes"),
    Case("C14", "C14_step_counter_attr.py", 0, r"recompile-limit"),
    Case("C17", "C17_fullgraph_unique.py", 0, r"graph-break.*C17_fullgraph_unique\.py:1[3-4]"),
    Case("C18", "C18_complex_rope.py", 0, r"complex numbers|^ENABLE"),
    Case("C21", "C21_custom_autograd_fn.py", 0, r"recompiles.*SEEN", ("--input", "float32[8,32]")),
    Case("C24", "C24_dropout_rng.py", 0, r"outputs-random"),
    Case("C27", "C27_batchnorm_train_state.py", 0, _COMPARED),
    Case("C29", "C29_nan_output.py", 0, r"outputs-nan.*NaN"),
    Case("C30", "C30_token_ids.py", 0, _COMPARED),
    Case("C30 float ids", "C30_token_ids.py", 2, r"indices.*Long", ("--input", "float32[2,64]")),
    Case("C30 ids out of range", "C30_token_ids.py", 3, r"index out of range", ("--input", "int64[2,64]<0,5000>")),
    Case("C30 code in a batch", "C30_token_ids.py", 2, r"holds objects beside", ("--inputs", "{cases}/holds_code.pt")),
    Case("C30 no batch", "C30_token_ids.py", 2, r"cannot load", ("--inputs", "{cases}/C30_token_ids.txt")),
    Case("C30 cut short", "C30_token_ids.py", 2, r"cannot load", ("--inputs", "{cases}/cut_short.pt")),
    Case(
        "C31 missing", "C31_kwargs_optional_mask.py", 2, r"missing.*input_ids", ("--input", "attention_mask=bool[2,16]")
    ),
    Case("C31", "C31_kwargs_optional_mask.py", 0, _COMPARED),
    Case("C33", "C33_list_inputs_varlen.py", 0, r"recompiles.*len\(feats\)"),
    Case("C35", "C35_channels_last.py", 0, _COMPARED),
    Case("C35 channels", "C35_channels_last.py", 3, r"3 channels, but got 4", ("--input", "float32[4,4,64,64]")),
    Case(
        "C35 by option",
        "C35_channels_last.py",
        0,
        _COMPARED,
        ("--input", "float32[B,3,64,64]@channels_last", "--dim", "B=4"),
    ),
    Case("C36", "C36_autocast_inside.py", 0, _COMPARED),
    Case("C38", "C38_required_ctor_args.py", 2, r"NeedsArgs\(in_dim, hidden: int, \*, act: str\) needs values.*--arg"),
    Case(
        "C38 with arguments",
        "C38_required_ctor_args.py",
        0,
        _COMPARED,
        ("--arg", "in_dim=16", "--arg", "hidden=32", "--arg", "act=relu", "--input", "float32[4,16]"),
    ),
    Case("C39", "C39_factory_only.py", 0, _COMPARED),
    Case("C40", "C40_pkg/mynet/net.py", 0, _COMPARED),
    Case("C42", "C42_argparse_at_import.py", 2, r"line 8.*after `--`"),
    Case("C44", "C44_notebook_export.py", 2, r"line 3 is notebook syntax"),
    Case("C44b", "C44b_notebook.ipynb", 2, r"export it first"),
    Case("C46", "C46_stdout_protocol_forgery.py", 0, _COMPARED),
    Case("C49", "C49_oom.py", 3, r"out of memory \(asked for 4,096"),
    Case("C50", "C50_segfault.py", 3, r"without torch.compile.*SIGSEGV"),
    Case("C51", "C51_hang.py", 3, r"without torch.compile.*not finished in", ("--budget", "8")),
    Case("C52", "C52_log_flood.py", 0, _COMPARED),
    Case("C54", "C54_bad_exception.py", 3, r"Ugly.*C54_bad_exception\.py:12"),
    Case("C56", "C56_many_classes.py", 0, _COMPARED, ("--input", "float32[2,16]")),
    Case("C58", "C58_swallowed_compile_error.py", 0, r"^RAN EAGER.*torch\._dynamo\.config\.disable"),
    Case("unpicklable", "unpicklable.py", 0, _COMPARED),
    Case("C60", "C60_thread_and_atexit.py", 0, _COMPARED),
)


def cases_in(folder: Path, names: tuple[str, ...] = ()) -> list[Case]:
    """The cases whose files lie in `folder`, and its further files without an expectation; only those whose name
    or file begins with one of `names`, if any are given."""
    known = [case for case in CASES if (folder / case.file).is_file()]
    expected = {case.file for case in known}
    further = [Case(path.stem, path.name) for path in sorted(folder.glob("*.py")) if path.name not in expected]
    return [case for case in known + further if not names or case.name.startswith(names) or case.file.startswith(names)]
