"""A function to replace may be called as one of C's library, unless it is refused: no compiler, no runtime has it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from cudaperf_agent.cuda import emulator
from cudaperf_agent.cuda.compile import compile_cuda
from cudaperf_agent.cuda.emulator.build import BuildLimits
from cudaperf_agent.cuda.toolchain import find_nvcc
from cudaperf_agent.tasks.c_types import CPP_KEYWORDS
from cudaperf_agent.tasks.clang_c import parse_c
from cudaperf_agent.tasks.cuda_names import why_not_entry

HEADERS = """
arpa/inet.h ctype.h dirent.h dlfcn.h err.h fcntl.h fenv.h fnmatch.h ftw.h getopt.h glob.h grp.h iconv.h ifaddrs.h
inttypes.h langinfo.h libgen.h libintl.h link.h locale.h math.h mntent.h netdb.h poll.h pthread.h pwd.h regex.h sched.h
search.h semaphore.h setjmp.h signal.h spawn.h stdio.h stdlib.h string.h strings.h sys/epoll.h sys/eventfd.h
sys/inotify.h sys/ioctl.h sys/ipc.h sys/mman.h sys/mount.h sys/prctl.h sys/ptrace.h sys/random.h sys/resource.h
sys/select.h sys/sem.h sys/sendfile.h sys/shm.h sys/socket.h sys/stat.h sys/statvfs.h sys/syscall.h sys/time.h
sys/timerfd.h sys/times.h sys/uio.h sys/utsname.h sys/wait.h sys/xattr.h syslog.h termios.h time.h ucontext.h uchar.h
unistd.h utime.h wchar.h wctype.h wordexp.h
""".split()
"""Of the C library."""
# As a generated file begins.
PROLOGUE = "#include <cuda_runtime.h>\n#include <math.h>\n#include <cstdio>\n#include <cstdlib>\n"


@pytest.fixture(scope="module")
def names() -> list[str]:
    """Of the functions that the C library has, those that are not refused."""
    included = "".join(f"#include <{header}>\n" for header in HEADERS)
    declared = parse_c(f"#define _GNU_SOURCE\n{included}", "headers.c").declared_functions
    return [n for n in declared if n[0] != "_" and n not in CPP_KEYWORDS and why_not_entry(n) is None]


@pytest.fixture(scope="module")
def text(names: list[str]) -> str:
    """An entry of each name, with parameters that no function of the library has."""
    return PROLOGUE + "".join(
        f'extern "C" void {name}(int n, float a, const float *x, float *y) {{ y[0] = a * x[n]; }}\n' for name in names
    )


def test_most_names_may_be_used(names: list[str]) -> None:
    assert len(names) > 800
    assert {"accept", "clone", "daemon", "index", "link", "send", "signal", "wcslen"} <= set(names)


async def test_the_emulator_compiles_every_entry_that_is_not_refused(text: str, tmp_path: Path) -> None:
    built = await emulator.build(text, path_name="names.cu", folder=tmp_path, limits=BuildLimits(seconds=300))
    assert built.library is not None, built.unsupported


async def test_nvcc_compiles_every_entry_that_is_not_refused(text: str) -> None:
    made = await compile_cuda(find_nvcc(), text, "library")
    assert [d.message for d in made.diagnostics if d.severity == "error"] == []
    assert made.artefact is not None


def test_the_runtime_of_cuda_calls_no_entry_that_is_not_refused(names: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("int main() {}\n")
    told = subprocess.run(
        [str(find_nvcc().path), "--dryrun", "a.cu"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    folders = [Path(folder) for folder in re.findall(r'-L"?([^" ]+)', told.stderr)]
    (archive, *_) = [f / "libcudart_static.a" for f in folders if (f / "libcudart_static.a").exists()]
    listed = subprocess.run(["nm", "-u", str(archive)], capture_output=True, text=True, check=True).stdout
    called = set(re.findall(r"^\s+U (\w+)$", listed, re.M))
    assert "pthread_mutex_lock" in called
    assert called & set(names) == set()
