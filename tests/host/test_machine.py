"""The host: samples of real processes, and facts read from a root directory made for the test."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tcompile_tui.host import machine
from tcompile_tui.host.machine import HostReader

MIB = 1 << 20
SPIN = "import time\nwhile True: pass"
SPIN_IN_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SPIN!r}])"


class Root:
    """A root directory of the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    monkeypatch.setattr(machine, "_ROOT", tmp_path)
    return Root(tmp_path)


@pytest.fixture
def version_2(root: Root) -> Root:
    root.write("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n")
    root.write("proc/self/cgroup", "0::/system.slice/job\n")
    root.write("sys/fs/cgroup/system.slice/job/cgroup.procs", "")
    return root


@pytest.fixture
def version_1(root: Root) -> Root:
    root.write(
        "proc/self/mounts",
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
        "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n",
    )
    root.write("proc/self/cgroup", "5:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n1:name=systemd:/\n")
    return root


# ---------------------------------------------------------------- samples


def test_a_sample_without_a_worker() -> None:
    sample = HostReader(lambda: None).read()
    assert 0 <= sample.cpu_percent <= 100
    assert 0 < sample.memory_used_bytes < sample.memory_total_bytes
    assert (sample.worker_cpu_percent, sample.worker_rss_bytes) == (None, None)


def test_cpu_use_is_since_the_last_call(monkeypatch: pytest.MonkeyPatch) -> None:
    template = psutil.cpu_times()
    zero = template._replace(**dict.fromkeys(template._fields, 0.0))
    times = iter([zero, zero._replace(user=3.0, idle=1.0), zero._replace(user=3.0, idle=2.0, iowait=3.0)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
    reader = HostReader(lambda: None)
    assert reader.read().cpu_percent == pytest.approx(75)
    assert reader.read().cpu_percent == pytest.approx(0)


def test_guest_time_does_not_count_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    template = psutil.cpu_times()
    zero = template._replace(**dict.fromkeys(template._fields, 0.0))
    times = iter([zero, zero._replace(user=1.0, guest=1.0, idle=1.0)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(times))
    assert HostReader(lambda: None).read().cpu_percent == pytest.approx(50)


def test_the_worker_is_its_whole_process_tree() -> None:
    process = subprocess.Popen([sys.executable, "-c", SPIN_IN_A_CHILD], start_new_session=True)
    try:
        reader = HostReader(lambda: process.pid)
        while not psutil.Process(process.pid).children():
            time.sleep(0.01)
        first = reader.read()
        time.sleep(0.3)
        second = reader.read()
    finally:
        os.killpg(process.pid, 9)
        process.wait()
    assert first.worker_cpu_percent is None
    assert second.worker_cpu_percent is not None and second.worker_cpu_percent > 5
    assert second.worker_rss_bytes is not None and second.worker_rss_bytes > 5 * MIB
    gone = reader.read()
    assert (gone.worker_cpu_percent, gone.worker_rss_bytes) == (None, None)


def test_a_new_worker_starts_anew() -> None:
    pids = iter([os.getpid(), os.getpid(), os.getppid()])
    reader = HostReader(lambda: next(pids))
    percents = [reader.read().worker_cpu_percent for _ in range(3)]
    assert [percent is None for percent in percents] == [True, False, True]


# ---------------------------------------------------------------- cgroups


def test_no_cgroup_no_limit(root: Root) -> None:
    assert machine.cgroup_cpu_limit() is None
    assert machine.facts({}).memory_total_bytes == psutil.virtual_memory().total


def test_cpu_quota_of_version_2_is_the_tightest_on_the_way_up(version_2: Root) -> None:
    version_2.write("sys/fs/cgroup/system.slice/job/cpu.max", "max 100000\n")
    assert machine.cgroup_cpu_limit() is None
    version_2.write("sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n")
    assert machine.cgroup_cpu_limit() == 1.5
    version_2.write("sys/fs/cgroup/system.slice/job/cpu.max", "50000 100000\n")
    assert machine.cgroup_cpu_limit() == 0.5
    assert machine.usable_cpus() == 1


def test_cpu_quota_of_version_1_in_a_container(version_1: Root) -> None:
    version_1.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n")
    version_1.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    assert machine.cgroup_cpu_limit() is None
    version_1.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000\n")
    assert machine.cgroup_cpu_limit() == 4.0


def test_affinity_limits_too(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 5})
    assert machine.usable_cpus() == 3


def test_memory_limit_of_version_2(version_2: Root) -> None:
    version_2.write("sys/fs/cgroup/system.slice/job/memory.max", "max\n")
    version_2.write("sys/fs/cgroup/system.slice/memory.max", f"{100 * MIB}\n")
    version_2.write("sys/fs/cgroup/system.slice/memory.current", f"{60 * MIB}\n")
    version_2.write("sys/fs/cgroup/system.slice/memory.stat", f"anon 5\ninactive_file {20 * MIB}\n")
    sample = HostReader(lambda: None).read()
    assert (sample.memory_used_bytes, sample.memory_total_bytes) == (40 * MIB, 100 * MIB)
    assert machine.facts({}).memory_total_bytes == 100 * MIB


def test_memory_limit_of_version_1(version_1: Root) -> None:
    version_1.write("sys/fs/cgroup/memory/docker/ab/memory.limit_in_bytes", f"{64 * MIB}\n")
    version_1.write("sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes", f"{30 * MIB}\n")
    version_1.write("sys/fs/cgroup/memory/docker/ab/memory.stat", f"total_inactive_file {10 * MIB}\n")
    sample = HostReader(lambda: None).read()
    assert (sample.memory_used_bytes, sample.memory_total_bytes) == (20 * MIB, 64 * MIB)


def test_a_limit_above_the_host_is_none(version_1: Root) -> None:
    version_1.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    assert HostReader(lambda: None).read().memory_total_bytes == psutil.virtual_memory().total


# ---------------------------------------------------------------- facts


def test_facts_of_this_machine() -> None:
    facts = machine.facts({})
    assert facts.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert facts.hostname == os.uname().nodename
    assert 1 <= facts.cpu_count <= (os.cpu_count() or 1)
    assert os.uname().release in facts.os
    assert (facts.slurm_job_id, facts.slurm_end_s) == (None, None)


def test_facts_that_cannot_be_read_are_none(root: Root) -> None:
    facts = machine.facts({})
    assert facts.boot_id is None
    assert not facts.in_container


def test_cpu_model(root: Root) -> None:
    root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 9654\nmodel name\t: other\n")
    assert machine.facts({}).cpu_model == "AMD EPYC 9654"


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv", "run/systemd/container"])
def test_a_container_by_its_files(root: Root, mark: str) -> None:
    root.write(mark, "")
    assert machine.facts({}).in_container


def test_a_container_by_cgroup_or_environment(root: Root) -> None:
    assert machine.facts({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}).in_container
    root.write("proc/1/cgroup", "0::/kubepods/pod1\n")
    assert machine.facts({}).in_container


def test_slurm_facts() -> None:
    facts = machine.facts({"SLURM_JOB_ID": "42", "SLURM_JOB_END_TIME": "1900000000"})
    assert (facts.slurm_job_id, facts.slurm_end_s) == ("42", 1.9e9)


# ---------------------------------------------------------------- what may end a run early

USER = "researcher"
SESSION = "0::/user.slice/user-1000.slice/session-3.scope\n"
USER_SCOPE = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope\n"


@pytest.fixture
def login(root: Root, monkeypatch: pytest.MonkeyPatch) -> Root:
    """A login session of USER on a machine that kills at logout."""
    entry = pwd.struct_passwd((USER, "x", 1000, 1000, "", "/home/r", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    root.write("etc/systemd/logind.conf", "[Login]\n#KillUserProcesses=no\nKillUserProcesses=yes\n")
    root.write("proc/self/cgroup", SESSION)
    return root


def test_a_logout_that_kills_is_warned_of(login: Root) -> None:
    warning = machine.login_kill_warning({})
    assert warning is not None and "\n" not in warning
    assert "systemd-run --user --scope" in warning and "loginctl enable-linger" in warning


def test_lingering_does_not_save_what_is_in_the_session(login: Root) -> None:
    login.write(f"var/lib/systemd/linger/{USER}", "")
    warning = machine.login_kill_warning({})
    assert warning is not None
    assert "systemd-run --user --scope" in warning and "enable-linger" not in warning


def test_outside_the_session_only_lingering_is_missing(login: Root) -> None:
    login.write("proc/self/cgroup", USER_SCOPE)
    warning = machine.login_kill_warning({})
    assert warning is not None
    assert "systemd-run" not in warning and "loginctl enable-linger" in warning
    login.write(f"var/lib/systemd/linger/{USER}", "")
    assert machine.login_kill_warning({}) is None


@pytest.mark.parametrize(
    "settings",
    [
        "#KillUserProcesses=yes",
        "KillUserProcesses=no",
        "KillUserProcesses=yes\nKillUserProcesses=no",
        f"KillUserProcesses=yes\nKillExcludeUsers=root {USER}",
        "KillUserProcesses=yes\nKillOnlyUsers=somebody",
    ],
)
def test_no_warning_where_nothing_is_killed(login: Root, settings: str) -> None:
    login.write("etc/systemd/logind.conf", f"[Login]\n{settings}\n")
    assert machine.login_kill_warning({}) is None


def test_drop_ins_win_over_the_main_file(login: Root) -> None:
    login.write("etc/systemd/logind.conf.d/50-site.conf", "[Login]\nKillUserProcesses=no\n")
    assert machine.login_kill_warning({}) is None
    login.write("usr/lib/systemd/logind.conf.d/90-vendor.conf", "[Login]\nKillUserProcesses=on\n")
    assert machine.login_kill_warning({}) is not None
    login.write("etc/systemd/logind.conf.d/90-vendor.conf", "")
    assert machine.login_kill_warning({}) is None


def test_a_machine_without_logind(root: Root) -> None:
    assert machine.login_kill_warning({}) is None


def test_a_slurm_job_is_named() -> None:
    warning = machine.login_kill_warning({"SLURM_JOB_ID": "4242", "SLURM_JOB_END_TIME": "1900000000"})
    expected = time.strftime("%Y-%m-%d %H:%M", time.localtime(1900000000))
    assert warning is not None and "Slurm job 4242" in warning and expected in warning
    unlimited = machine.login_kill_warning({"SLURM_JOB_ID": "4242"})
    assert unlimited is not None and "latest" not in unlimited


# ---------------------------------------------------------------- files


def test_free_bytes_of_a_folder_that_is_not_there_yet(tmp_path: Path) -> None:
    there, later = machine.free_bytes(tmp_path), machine.free_bytes(tmp_path / "a" / "b")
    assert there is not None and later is not None
    assert there > 0 and abs(there - later) < 1 << 30


def test_filesystem_type_is_that_of_the_deepest_mount(root: Root, tmp_path: Path) -> None:
    base = str(tmp_path.resolve()).replace(" ", "\\040")
    (tmp_path / "with space" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "with space")
    root.write(
        "proc/self/mounts",
        f"/dev/a / ext4 rw 0 0\nold {base}/with\\040space xfs rw 0 0\n"
        f"srv:/x {base}/with\\040space nfs4 rw 0 0\ntmp {base}/with tmpfs rw 0 0\n",
    )
    assert machine.filesystem_type(tmp_path / "with space" / "in" / "new") == "nfs4"
    assert machine.filesystem_type(tmp_path / "link") == "nfs4"
    assert machine.filesystem_type(tmp_path / "without") == "ext4"


def test_filesystem_type_without_proc(root: Root) -> None:
    assert machine.filesystem_type(Path("/tmp")) is None
