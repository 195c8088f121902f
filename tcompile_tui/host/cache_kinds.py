"""What torch.compile keeps on disk, and how each kind is told from files that are somebody else's.

Recognised is the layout that torch, Triton and this program write (seen with torch 2.6 to 2.13, Triton 3), entry by
entry: names of fixed shape in folders of fixed names. Whatever else lies in such a folder belongs to someone else.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

ASIDE_PREFIX = ".tcompile-tui-trash-"
"""An entry that is being deleted carries this name, with a random part; what a kill left of it is a leftover."""


class Family(str, enum.Enum):
    """What kind of folder a place is."""

    INDUCTOR = "inductor"
    TRITON = "triton"
    KERNELS = "kernels"
    HEADERS = "headers"
    PRIVATE = "private"
    RUNS = "runs"

    @property
    def label(self) -> str:
        return _FAMILY_LABELS[self]


class CacheKind(str, enum.Enum):
    """The value is the name on the command line and in JSON."""

    FX_GRAPH = "fx-graph"
    AOT_AUTOGRAD = "aot-autograd"
    CODE = "code"
    AUTOTUNE = "autotune"
    TRITON = "triton"
    PGO = "pgo"
    HEADERS = "headers"
    KERNELS = "kernels"
    LOCKS = "locks"
    KEPT = "kept"
    RUNS = "runs"
    LEFTOVERS = "leftovers"

    @property
    def label(self) -> str:
        return _TEXTS[self].label

    @property
    def meaning(self) -> str:
        """What it is, in one sentence."""
        return _TEXTS[self].meaning

    @property
    def afterwards(self) -> str:
        """What clearing it costs, in one sentence."""
        return _TEXTS[self].afterwards


COMPILE_KINDS = frozenset(CacheKind) - {CacheKind.RUNS}
"""What "everything" means: recorded runs are no cache."""


def kind_of(family: Family, path: str) -> CacheKind | None:
    """The kind of the entry at `path`, relative to its place; None if it is no entry."""
    match = _ENTRIES[family].fullmatch(path)
    return CacheKind[match.lastgroup] if match is not None and match.lastgroup is not None else None


def is_inside(family: Family, path: str) -> bool:
    """Whether `path`, relative to its place, is a folder in which entries lie."""
    return _FOLDERS[family].fullmatch(path) is not None


# ---------------------------------------------------------------- layout

_HASH = "[a-z2-7]{40,}"  # base32 of sha256, as torch._inductor.codecache writes it
_TRITON_KEY = r"(?:[A-Z2-7]{52}|[0-9a-f]{64}|(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=[^0-9]*[0-9])[A-Za-z0-9_-]{43})"
_LEFTOVERS = rf"(?P<LEFTOVERS>{re.escape(ASIDE_PREFIX)}[0-9a-f]{{8}}-\d+)"
_HEADER_FILES = rf"c{_HASH}\.h(?:\.gch)?"
_LOCK_FILES = rf"{_HASH}\.lock"
_OF_ONE = "(?:[0-9a-f]{8}/)?"  # headers of one interpreter and its torch

_ENTRIES = {
    Family.INDUCTOR: re.compile(
        "|".join(
            (
                rf"(?P<FX_GRAPH>fxgraph/(?P<graph>[a-z2-7]{{2}})/f(?P=graph){_HASH})",
                rf"(?P<AOT_AUTOGRAD>aotautograd/a{_HASH})",
                rf"(?P<CODE>(?P<code>[a-z2-7]{{2}})/c(?P=code){_HASH}[^/]*)",
                rf"(?P<AUTOTUNE>[a-z2-7]{{2}}/[0-9a-z]{{40,}}\.best_config|cache/(?:[0-9a-f]{{64}}|{_HASH}))",
                rf"(?P<TRITON>triton/(?:\d+/)?{_TRITON_KEY})",
                r"(?P<PGO>dynamo/code_state_[^/]+\.pkl(?:\.lock)?)",
                rf"(?P<HEADERS>precompiled_headers/(?:{_HEADER_FILES}|locks/{_LOCK_FILES}))",
                rf"(?P<LOCKS>locks/{_LOCK_FILES})",
                _LEFTOVERS,
            )
        )
    ),
    Family.TRITON: re.compile(rf"(?P<TRITON>{_TRITON_KEY})|{_LEFTOVERS}"),
    Family.KERNELS: re.compile(rf"(?P<KERNELS>[^/]+_arch[^/]+_nvrtc\d+\.\d+_(?:sass|ptx)_\d+_\d+)|{_LEFTOVERS}"),
    Family.HEADERS: re.compile(rf"(?P<HEADERS>{_HEADER_FILES}|locks/{_LOCK_FILES})|{_LEFTOVERS}"),
    Family.PRIVATE: re.compile(
        rf"(?P<KEPT>[0-9a-f]{{8}})|(?P<HEADERS>headers/{_OF_ONE}(?:{_HEADER_FILES}|locks/{_LOCK_FILES}))|{_LEFTOVERS}"
    ),
    Family.RUNS: re.compile(rf"(?P<RUNS>[^/.][^/]*)|{_LEFTOVERS}"),
}

_NOWHERE = re.compile(r"(?!)")
_FOLDERS = {
    Family.INDUCTOR: re.compile(
        r"fxgraph(?:/[a-z2-7]{2})?|aotautograd|[a-z2-7]{2}|cache|triton(?:/\d+)?|dynamo|locks"
        r"|precompiled_headers(?:/locks)?"
    ),
    Family.TRITON: _NOWHERE,
    Family.KERNELS: _NOWHERE,
    Family.HEADERS: re.compile("locks"),
    Family.PRIVATE: re.compile("headers(?:/[0-9a-f]{8})?(?:/locks)?"),
    Family.RUNS: _NOWHERE,
}


# ---------------------------------------------------------------- words


@dataclass(frozen=True)
class _Text:
    label: str
    meaning: str
    afterwards: str


_FAMILY_LABELS = {
    Family.INDUCTOR: "Inductor",
    Family.TRITON: "Triton",
    Family.KERNELS: "torch kernels",
    Family.HEADERS: "C++ headers",
    Family.PRIVATE: "this program",
    Family.RUNS: "recorded runs",
}

_TEXTS = {
    CacheKind.FX_GRAPH: _Text(
        "FX graphs",
        "Compiled graphs, by a hash of the graph and its settings: what makes a second start warm.",
        "The next start compiles these graphs again.",
    ),
    CacheKind.AOT_AUTOGRAD: _Text(
        "AOTAutograd",
        "Traced forward and backward graphs; a hit skips AOTAutograd and most of Inductor.",
        "Alone it makes a start slower, not cold: the FX graphs and the code still hit.",
    ),
    CacheKind.CODE: _Text(
        "generated code",
        "The Python, C++ and shared objects that Inductor wrote; processes have them loaded.",
        "Written and built again when a graph needs them.",
    ),
    CacheKind.AUTOTUNE: _Text(
        "autotuning",
        "Block sizes and kernels that autotuning chose.",
        "Kernels are timed again, and a near tie may fall the other way.",
    ),
    CacheKind.TRITON: _Text(
        "Triton kernels",
        "Kernels that Triton compiled, one folder each.",
        "Compiled again at their first launch.",
    ),
    CacheKind.PGO: _Text(
        "PGO state",
        "Which sizes turned dynamic in earlier runs of a job (TORCH_COMPILE_JOB_ID).",
        "Sizes are taken as static first again: some recompiles come back.",
    ),
    CacheKind.HEADERS: _Text(
        "C++ headers",
        "Headers that g++ precompiled for CPU code. They ignore TORCHINDUCTOR_CACHE_DIR.",
        "The next CPU compile takes about 20 s longer, once.",
    ),
    CacheKind.KERNELS: _Text(
        "jiterator kernels",
        "Kernels that eager torch compiled with NVRTC; torch.compile does not use them.",
        "Compiled again when eager needs them.",
    ),
    CacheKind.LOCKS: _Text(
        "lock files",
        "Empty files that keep two processes from building the same thing.",
        "Nothing, unless a process is compiling just now.",
    ),
    CacheKind.KEPT: _Text(
        "private caches of runs",
        "What a run of this program compiled into, kept by --keep-caches or left by a kill.",
        "Nothing: no later run reads them.",
    ),
    CacheKind.RUNS: _Text(
        "run folders",
        "The records of your runs. They are no cache: only the Runs screen and --kind runs delete them.",
        "The runs cannot be looked at again.",
    ),
    CacheKind.LEFTOVERS: _Text(
        "leftovers",
        "What a clearing that was interrupted had put aside.",
        "Nothing.",
    ),
}


@dataclass(frozen=True)
class MemoryNote:
    """A line for a running process, and what it does and does not do."""

    line: str
    effect: str


# Figures: one small function on a CPU, torch 2.13; the first compile in a new cache took 20.6 s.
IN_MEMORY = (
    MemoryNote(
        "torch.compiler.reset()",
        "forgets compiled code, guards and recompile counts of this process. The folders stay: the next call is warm "
        "(0.2 s where a cold one took 20 s). torch._dynamo.reset() does the same.",
    ),
    MemoryNote(
        "with torch._inductor.utils.fresh_inductor_cache(): ...",
        "after a reset, compiles into an empty temporary folder: cold but for imports and C++ headers. Works up to "
        "torch 2.14; from 2.8 on it is also called fresh_cache.",
    ),
    MemoryNote(
        "torch._inductor.utils.clear_inductor_caches()",
        "empties Inductor's tables in memory only: the folders still hit.",
    ),
)
