"""Functions that a translation has no use for, by their names: in the text of a candidate, and as the linker sees them.

A name in the text comes with its line, but macros, labels and addresses can hide it. Whatever they do, an object that
calls a function of the C library refers to it by its name, and one that takes its place defines it: the linker tells
both of the names that it is asked to trace. A function that the candidate has to itself (``static``, or of C++) is
neither, whatever it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_CALLS = {
    "dlopen dlmopen dlsym dlvsym dlinfo dl_iterate_phdr dladdr dladdr1": "symbols of the process around it",
    "fork vfork clone clone3 execv execve execvp execvpe execl execlp execle fexecve execveat posix_spawn posix_spawnp "
    "popen system": "other processes",
    "ptrace process_vm_readv process_vm_writev mprotect pkey_mprotect userfaultfd": "memory of the process around it",
    "sigaction sigaltstack sigprocmask pthread_sigmask signal sysv_signal bsd_signal setjmp sigsetjmp longjmp "
    "siglongjmp getcontext setcontext makecontext swapcontext": "signals and stacks",
    "socket socketpair connect sendto sendmsg recvfrom recvmsg getaddrinfo": "the network",
    "shm_open shmget shmat memfd_create mkfifo": "memory shared between processes",
    "pthread_create thrd_create fopen freopen open creat openat syscall getenv secure_getenv setenv putenv unsetenv "
    "clearenv": "the system outside the computation",
    "clock_gettime gettimeofday timespec_get": "the clock or the profiler",
}
_HARNESS = "cudaperf_call cudaperf_device_call cudaperf_setup cudaperf_table cudaperf_emulator_report"
# Not functions, or ones whose names no text has: only the linker can tell.
_LINKED = {
    "environ": "the system outside the computation",
    "_r_debug _rtld_global _rtld_global_ro _DYNAMIC __libc_stack_end": "symbols of the process around it",
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE": "threads of the host",
}
_READABLE = {"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE": "std::thread"}
_PROGRAM_MAY = frozenset("getenv secure_getenv fopen freopen open openat creat".split())
# As the C library has them besides: its own names for them, and those that headers put in their place.
_FORMS = ("{}", "_{}", "__{}", "{}64", "__{}64", "__{}_2", "__{}64_2", "__{}_chk", "__libc_{}", "__sys{}", "__xpg_{}")
_TRACE = re.compile(r"^.*: (?:reference to|definition of) \S+\n?", re.M)
_TOLD = re.compile(r"^(?:.*: )?(?P<file>\S[^\n]*?\.l?o): (?P<how>reference to|definition of) (?P<name>\S+)\n?", re.M)
_START = re.compile(r"[grSM]*crt\w*\.o")  # what a compiler puts around every program

CALLS = {"|".join(map(re.escape, names.split())): why for names, why in _CALLS.items()}
"""Patterns of names of functions, each with what a candidate would reach by them."""


def trace_flags(defined: Iterable[str] = ()) -> list[str]:
    """Arguments for the linker's driver, so that it tells who has the refused names, and the ones given."""
    names = [*_known(), *defined]
    return ["-Wl," + ",".join(f"-y,{name}" for name in names)]


def traced(said: str, beside: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """What the linker told of the candidate's own object, and its messages without that.

    Args:
        said: All that was printed.
        beside: Names of the object files that are not the candidate's.

    Returns:
        Names that it refers to or defines, each once, those that it defines with ``=`` before them.
    """
    found: dict[str, None] = {}
    for match in _TOLD.finditer(said):
        name = match["name"].split("@")[0]
        file = match["file"].rsplit("/", 1)[-1]
        ours = file not in beside and not _START.fullmatch(file) and "(" not in match["file"]
        if ours and (match["how"] == "definition of" or name in _known()):
            found.setdefault(f"={name}" if match["how"] == "definition of" else name)
    return tuple(found), _TRACE.sub("", said)


def refused(reached: Iterable[str], *, program: bool = False) -> tuple[str, str] | None:
    """Of what `traced` found, the first name that a translation has no use for, and why; `None` if there is none."""
    for told in reached:
        name = told.removeprefix("=")
        base, why = _known().get(name, (name, "a name of the test harness or its checker"))
        if told != name or not may(base, program=program):
            return _READABLE.get(base, base), why
    return None


def may(name: str, *, program: bool) -> bool:
    """Whether a candidate may call a function of this name: a program reads what the C program read."""
    return program and name in _PROGRAM_MAY


@lru_cache(maxsize=1)
def _known() -> dict[str, tuple[str, str]]:
    """Every traced name with the one that it stands for, and why it is refused."""
    found = {
        form.format(name): (name, why) for names, why in _CALLS.items() for name in names.split() for form in _FORMS
    }
    found |= {
        form.format(name): (name, why)
        for names, why in _LINKED.items()
        for name in names.split()
        for form in ("{}", "_{}", "__{}")
    }
    return found | {name: (name, "a name of the test harness or its checker") for name in _HARNESS.split()}
