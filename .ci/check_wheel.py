"""`python .ci/check_wheel.py WHEEL`: it holds every tracked file of the package, the licence and the command."""

from __future__ import annotations

import subprocess
import sys
import zipfile


def main() -> int:
    wheel = zipfile.ZipFile(sys.argv[1])
    names = set(wheel.namelist())
    tracked = subprocess.run(["git", "ls-files", "tcompile_tui"], capture_output=True, text=True, check=True).stdout
    missing = set(tracked.splitlines()) - names
    more = {name for name in names if ".dist-info/" not in name} - set(tracked.splitlines())
    about = {name.partition("/")[2]: name for name in names if ".dist-info/" in name}
    metadata = wheel.read(about["METADATA"]).decode()
    faults = [f"not in the wheel: {name}" for name in sorted(missing)]
    faults += [f"not tracked, but in the wheel: {name}" for name in sorted(more)]
    if "licenses/LICENSE" not in about or "License-Expression: MIT\n" not in metadata:
        faults.append("the licence is not in the wheel")
    if "tcompile-tui = tcompile_tui.__main__:main" not in wheel.read(about["entry_points.txt"]).decode():
        faults.append("the command tcompile-tui is not in the wheel")
    print("\n".join(faults) or f"{len(names)} files in {sys.argv[1]}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
