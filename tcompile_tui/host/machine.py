"""The host: what it is, how busy it is, and what may end a run on it early. Linux."""

from __future__ import annotations

import datetime
import os
import platform
import pwd
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from tcompile_tui.core.events import HostSample
from tcompile_tui.host import reclaim

_ROOT = Path("/")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TRUE_WORDS = ("1", "yes", "y", "true", "t", "on")


@dataclass(frozen=True)
class MachineFacts:
    """What does not change while a run lasts.

    `cpu_count` is what this process may use, `memory_total_bytes` what its container may use; `slurm_end_s`
    is in seconds since the epoch.
    """

    hostname: str
    boot_id: str | None
    cpu_count: int
    cpu_model: str | None
    memory_total_bytes: int
    os: str
    in_container: bool
    slurm_job_id: str | None
    slurm_end_s: float | None


def facts(environment: Mapping[str, str] | None = None) -> MachineFacts:
    """`environment` is this process's when left out."""
    environment = os.environ if environment is None else environment
    return MachineFacts(
        hostname=platform.node(),
        boot_id=(_text("proc/sys/kernel/random/boot_id") or "").strip() or None,
        cpu_count=usable_cpus(),
        cpu_model=cpu_name(),
        memory_total_bytes=_memory_bytes(_memory_cgroup())[1],
        os=_os_name(),
        in_container=_in_container(environment),
        slurm_job_id=environment.get("SLURM_JOB_ID") or None,
        slurm_end_s=_slurm_end_s(environment),
    )


def usable_cpus() -> int:
    """Whole CPUs that affinity and cgroup quota leave to this process, at least 1."""
    count = len(os.sched_getaffinity(0))
    limit = cgroup_cpu_limit()
    return count if limit is None else max(1, min(count, int(limit)))


# ---------------------------------------------------------------- samples


class HostReader:
    """Reads host and worker. `worker_pid` gives the root of the worker's process tree, or None."""

    def __init__(self, worker_pid: Callable[[], int | None]) -> None:
        self._worker_pid = worker_pid
        self._memory_cgroup = _memory_cgroup()
        self._cpu_s = _busy_and_total_s()
        self._cpu_percent = 0.0
        self._tree: tuple[int, float, float] | None = None  # root PID, CPU seconds, when
        self._processes: dict[int, _Usage] = {}

    def read(self) -> HostSample:
        """`cpu_percent` is of all CPUs of the host, since the last call. `worker_cpu_percent` is of one CPU,
        so 200 is two of them; it is None for a tree's first sample. `worker_rss_bytes` adds up the processes'
        sizes, shared pages in each."""
        used, total = _memory_bytes(self._memory_cgroup)
        worker_cpu_percent, worker_rss_bytes, busiest = self._worker()
        return HostSample(
            cpu_percent=self._host_cpu_percent(),
            load_1m=_load_1m(),
            memory_used_bytes=used,
            memory_total_bytes=total,
            worker_cpu_percent=worker_cpu_percent,
            worker_rss_bytes=worker_rss_bytes,
            busiest=busiest,
        )

    def _host_cpu_percent(self) -> float:
        # Not psutil.cpu_percent: its memory of the last call is kept per thread.
        busy_s, total_s = self._cpu_s
        self._cpu_s = _busy_and_total_s()
        elapsed_s = self._cpu_s[1] - total_s
        if elapsed_s > 0:
            self._cpu_percent = min(100.0, max(0.0, 100 * (self._cpu_s[0] - busy_s) / elapsed_s))
        return self._cpu_percent

    def _worker(self) -> tuple[float | None, int | None, str | None]:
        pid = self._worker_pid()
        usage = None if pid is None else _tree_usage(pid)
        if pid is None or usage is None:
            self._tree, self._processes = None, {}
            return None, None, None
        cpu_s, rss_bytes, processes = usage
        busiest = self._busiest(processes)
        now_s = time.monotonic()
        before, self._tree = self._tree, (pid, cpu_s, now_s)
        if before is None or before[0] != pid or now_s <= before[2]:
            return None, rss_bytes, busiest
        # A process that has ended but is not reaped yet is missing from the sum for a moment.
        self._tree = (pid, max(cpu_s, before[1]), now_s)
        return 100 * (self._tree[1] - before[1]) / (now_s - before[2]), rss_bytes, busiest

    def _busiest(self, processes: dict[int, _Usage]) -> str | None:
        """One that waits for a CPU or for a disk is at work, too."""
        before, self._processes = self._processes, processes
        work = {
            pid: (now.cpu_s - before[pid].cpu_s if pid in before else 0.0, now.at_work)
            for pid, now in processes.items()
        }
        pid = max(work, key=work.__getitem__, default=None)
        return (_text(f"proc/{pid}/comm") or "").strip() or None if pid is not None and any(work[pid]) else None


def _busy_and_total_s() -> tuple[float, float]:
    times = psutil.cpu_times()
    total_s = sum(times) - times.guest - times.guest_nice  # guest time is part of user time
    return total_s - times.idle - times.iowait, total_s


@dataclass(frozen=True)
class _Usage:
    """One process, without its children. `at_work`: it runs, or waits for a CPU or a disk."""

    cpu_s: float
    at_work: bool


def _tree_usage(root: int) -> tuple[float, int, dict[int, _Usage]] | None:
    """CPU seconds that a process tree has used, with children that have ended, its resident bytes, and its living
    processes."""
    if reclaim.stat_fields(root) is None:
        return None
    cpu_ticks = pages = 0
    processes = {}
    for pid in (root, *reclaim.descendants_of(root)):
        fields = reclaim.stat_fields(pid)
        if fields is not None:
            cpu_ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
            pages += int(fields[21])
            processes[pid] = _Usage((int(fields[11]) + int(fields[12])) * _TICK_S, fields[0] in (b"R", b"D"))
    return cpu_ticks * _TICK_S, pages * _PAGE_BYTES, processes


def _load_1m() -> float | None:
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


# ---------------------------------------------------------------- cgroups, version 2 and 1


def cgroup_cpu_limit() -> float | None:
    """CPUs that the cgroup's quota allows, for example 1.5; None without a quota."""
    limits = [int(quota) / int(period) for quota, period in _cpu_quotas() if quota.isdecimal() and int(period)]
    return min(limits, default=None)


def _cpu_quotas() -> Iterator[tuple[str, str]]:
    for folder in _cgroup_folders(""):
        quota, _, period = (_text(folder / "cpu.max") or "").strip().partition(" ")
        yield quota, period or "100000"
    for folder in _cgroup_folders("cpu"):
        yield (
            (_text(folder / "cpu.cfs_quota_us") or "").strip(),  # -1: no limit
            (_text(folder / "cpu.cfs_period_us") or "100000").strip(),
        )


@dataclass(frozen=True)
class _MemoryCgroup:
    """The cgroup whose memory limit binds, and the files that tell how much of it is used."""

    limit_bytes: int
    usage: Path
    stat: Path
    cache_key: str


def _memory_cgroup() -> _MemoryCgroup | None:
    found = []
    for controller, limit, usage, cache_key in (
        ("", "memory.max", "memory.current", "inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        for folder in _cgroup_folders(controller):
            text = (_text(folder / limit) or "").strip()
            if text.isdecimal():
                found.append(_MemoryCgroup(int(text), folder / usage, folder / "memory.stat", cache_key))
    return min(found, key=lambda cgroup: cgroup.limit_bytes, default=None)


def _memory_bytes(cgroup: _MemoryCgroup | None) -> tuple[int, int]:
    """Used and total memory, of the container where that has less than the host. Cache that the kernel would
    give back does not count as used."""
    host = psutil.virtual_memory()
    used = host.total - host.available
    if cgroup is None or cgroup.limit_bytes >= host.total:
        return used, host.total
    usage = (_text(cgroup.usage) or "").strip()
    if usage.isdecimal():
        stat = dict(line.split(" ", 1) for line in (_text(cgroup.stat) or "").splitlines() if " " in line)
        used = max(0, int(usage) - int(stat.get(cgroup.cache_key, 0)))
    return min(used, cgroup.limit_bytes), cgroup.limit_bytes


def _cgroup_folders(controller: str) -> list[Path]:
    """This process's cgroup and those above it: of a version 1 controller, or of version 2 if that is ''."""
    mount = next(
        (
            _ROOT / point.lstrip("/")
            for point, kind, options in _mounts()
            if (kind == "cgroup" and controller in options.split(",") if controller else kind == "cgroup2")
        ),
        None,
    )
    if mount is None:
        return []
    folder = mount / _cgroup_path(controller).lstrip("/")
    if ".." in folder.parts or not folder.is_dir():  # a container may show its own cgroup as the mount's root
        return [mount]
    return [folder, *(parent for parent in folder.parents if parent.is_relative_to(mount))]


def _cgroup_path(controller: str) -> str:
    for line in (_text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path
    return ""


# ---------------------------------------------------------------- what may end a run early


def login_kill_warning(environment: Mapping[str, str] | None = None) -> str | None:
    """One line if a run may die before it is done: with its Slurm job, or with the login."""
    environment = os.environ if environment is None else environment
    job = environment.get("SLURM_JOB_ID")
    if job:
        end_s = _slurm_end_s(environment)
        at = "" if end_s is None else f", at {datetime.datetime.fromtimestamp(end_s):%Y-%m-%d %H:%M} at the latest"
        return f"this runs in Slurm job {job}: the job's end is the end of the run{at}"
    user = _user_name()
    if user is None or not _logind_kills(user):
        return None
    # Only what is in the session's scope is killed with it; what the user's own systemd holds ends with that.
    steps = []
    if re.search(r"/session-[^/]+\.scope", _text("proc/self/cgroup") or ""):
        steps.append("start it with `systemd-run --user --scope tcompile-tui ...`")
    if not (_ROOT / "var/lib/systemd/linger" / user).exists():
        steps.append("run `loginctl enable-linger` once")
    if not steps:
        return None
    advice = " and ".join(steps)
    return f"logging out kills this run (KillUserProcesses=yes in logind.conf): to keep it, {advice}"


def _logind_kills(user: str) -> bool:
    settings = _logind_settings()
    only = settings.get("KillOnlyUsers", "").split()
    excluded = settings.get("KillExcludeUsers", "root").split()
    kills = settings.get("KillUserProcesses", "").lower() in _TRUE_WORDS
    return kills and user not in excluded and (not only or user in only)


def _logind_settings() -> dict[str, str]:
    """Later files win: the main file, then drop-ins by name; one in /etc hides its namesakes elsewhere."""
    folders = [_ROOT / top / "systemd" for top in ("usr/lib", "usr/local/lib", "run", "etc")]
    main = [file for folder in folders if (file := folder / "logind.conf").is_file()]
    drop_ins = {file.name: file for folder in folders for file in folder.glob("logind.conf.d/*.conf")}
    settings: dict[str, str] = {}
    for file in (*main[-1:], *(drop_ins[name] for name in sorted(drop_ins))):
        for line in (_text(file) or "").splitlines():
            key, equals, value = line.partition("=")
            if equals and not line.lstrip().startswith(("#", ";")):
                settings[key.strip()] = value.strip()
    return settings


def _user_name() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None


def _slurm_end_s(environment: Mapping[str, str]) -> float | None:
    text = environment.get("SLURM_JOB_END_TIME", "")
    return float(text) if text.isdecimal() else None


# ---------------------------------------------------------------- files and names


def free_bytes(path: Path) -> int | None:
    """Free for this user on the file system that holds `path`, or would hold it."""
    existing = next((folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists()), None)
    try:
        return None if existing is None else shutil.disk_usage(existing).free
    except OSError:
        return None


def filesystem_type(path: Path) -> str | None:
    """For example 'ext4', 'tmpfs' or 'nfs4'."""
    target = path.resolve()
    holding = [(len(Path(point).parts), kind) for point, kind, _ in _mounts() if target.is_relative_to(point)]
    deepest = max((depth for depth, _ in holding), default=None)
    return next((kind for depth, kind in reversed(holding) if depth == deepest), None)


def mount_points_below(path: Path) -> list[Path]:
    """Where other file systems, or other parts of this one, are mounted inside a folder."""
    return [Path(point) for point, _, _ in _mounts() if path in Path(point).parents]


def _mounts() -> Iterator[tuple[str, str, str]]:
    """Mount point, file system type and options; a later mount covers an earlier one at the same point."""
    for line in (_text("proc/self/mounts") or "").splitlines():
        fields = line.split(" ")
        if len(fields) >= 4:
            point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
            yield point, fields[2], fields[3]


def cpu_name() -> str:
    """The processor's model name, for people."""
    found = re.search(r"^model name\s*:\s*(.+)$", _text("proc/cpuinfo") or "", re.MULTILINE)
    return found[1].strip() if found else platform.machine() or "CPU"


def _os_name() -> str:
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']} ({kernel})"
    except (OSError, KeyError):
        return kernel


def _in_container(environment: Mapping[str, str]) -> bool:
    """A guess by the marks that Docker, Podman, Kubernetes, Apptainer and systemd-nspawn leave."""
    files = (".dockerenv", "run/.containerenv", "run/systemd/container", ".singularity.d")
    variables = ("container", "KUBERNETES_SERVICE_HOST", "APPTAINER_NAME", "SINGULARITY_NAME")
    groups = _text("proc/1/cgroup") or ""
    return (
        any((_ROOT / file).exists() for file in files)
        or any(environment.get(variable) for variable in variables)
        or any(word in groups for word in ("docker", "kubepods", "containerd", "libpod", "/lxc"))
    )


def _text(file: str | Path) -> str | None:
    """A file's text, None when it cannot be read. A relative path is below the root."""
    try:
        return (_ROOT / file).read_text("utf-8", "replace")
    except OSError:
        return None
