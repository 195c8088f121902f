"""`python -m tests.full.versions PYTHON...`: what each interpreter's torch gives of every compiler signal, as a table.

Each PYTHON needs torch and nothing else. The status is 1 if a signal is not as that release should give it.
"""

from __future__ import annotations

import argparse
import sys

from tests.worker.contract import YES, Contract, ContractError, check_contract
from tests.worker.signals import SIGNALS


def table_of(contracts: list[Contract]) -> str:
    """Markdown: one row a signal, one column a torch. Signals that all of them give share the last row."""
    lines = [_row("signal", *(f"torch {contract.torch}, Python {contract.python}" for contract in contracts))]
    lines.append(_row(*["---"] * (len(contracts) + 1)))
    alike = 0
    for signal in SIGNALS:
        outcomes = [contract.outcomes[signal.name] for contract in contracts]
        if all(outcome == YES for outcome in outcomes):
            alike += 1
        else:
            lines.append(_row(signal.name, *outcomes))
    lines.append(_row(f"each of the other {alike}", *[YES] * len(contracts)))
    return "\n".join(lines)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.full.versions", description=__doc__)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="an interpreter whose environment has torch")
    contracts, failed = [], False
    for python in parser.parse_args().pythons:
        try:
            contracts.append(check_contract(python))
        except ContractError as error:
            print(f"error: {error}", file=sys.stderr)
            failed = True
    if contracts:
        print(table_of(contracts))
    for contract in contracts:
        for name, outcome in contract.broken().items():
            print(f"torch {contract.torch}: {name}: {outcome}", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
