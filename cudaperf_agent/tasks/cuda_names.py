"""Names that C may give to its own, and CUDA may not, since its headers or its runtime have them already.

nvcc includes the C library's headers and its own before the first line of a file. A function of the same name is then
an error, or another function; a helper is renamed for it, the entry, whose name callers know, is refused.
"""

from __future__ import annotations

import functools
import re

from cudaperf_agent.tasks.clang_c import parse_c

_INCLUDED = """#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
"""
# In C++ these are overloaded, so that a function with other parameters is another one.
_OVERLOADED = frozenset(
    """
    basename index isinf isnan memchr memrchr rawmemchr rindex strcasestr strchr strchrnul strpbrk strrchr strstr
    """.split()
)
_CUDA = """
clock64 cospi cospif cyl_bessel_i0 cyl_bessel_i0f cyl_bessel_i1 cyl_bessel_i1f dim3 erfcinv erfcinvf erfcx erfcxf erfinv
erfinvf fdivide fdividef llmax llmin max min norm norm3d norm3df norm4d norm4df normcdf normcdff normcdfinv normcdfinvf
normf rcbrt rcbrtf rhypot rhypotf rnorm rnorm3d rnorm3df rnorm4d rnorm4df rnormf rsqrt rsqrtf sincospi sincospif sinpi
sinpif uint3 ullmax ullmin umax umin
"""
# What libcudart_static.a takes from the C library, beside threads, and no header above declares.
_RUNTIME = frozenset(
    """
    bind chmod close closedir connect dlclose dlerror dlmopen dlopen dlsym dlvsym fchmod fcntl ftruncate
    get_nprocs getcwd getegid geteuid gethostname getpid gettimeofday getuid gnu_get_libc_version kill listen
    lseek madvise mkdir mkfifo mmap mprotect munmap nftw open opendir pipe poll read readdir recvmsg rmdir
    sched_yield sem_destroy sem_init sem_post sem_timedwait sem_trywait sem_wait sendmsg setsockopt shm_open
    shm_unlink shmat shmctl shmdt shmget socket socketpair strstr syscall sysconf sysinfo uname unlink usleep
    write
    """.split()
)
_THREADS = "pthread_"
# Of the same, what those headers declare.
_RUNTIME_DECLARED = frozenset(
    """
    abort atexit atoi calloc clock_gettime exit fclose fdopen feof ferror fflush fgetc fgets fileno fopen fprintf
    fread free fscanf fseek ftell fwrite getenv localtime_r malloc memchr memcmp memcpy memmove memset nanosleep
    realloc realpath remove setenv snprintf sscanf strchr strcmp strcpy strdup strlen strncat strncmp strncpy
    strrchr strstr strtol strtoul time vsnprintf
    """.split()
)
# What the driver's library, which a program gets besides, may take.
_DRIVER = frozenset(
    """
    accept access epoll_create epoll_ctl epoll_wait eventfd getpagesize getrlimit getrusage getsockname getsockopt
    gettid ioctl mlock mremap munlock openat pipe2 prctl pread pwrite readlink readv recv recvfrom sched_getaffinity
    sched_setaffinity send sendto shutdown sigaction waitpid writev
    """.split()
)
_API = re.compile(r"cuda[A-Z]\w*|__cuda\w+")
# What a candidate that calls it is a cheat for, and nothing above has.
_SUSPICIOUS = frozenset(
    """
    bsd_signal clone clone3 creat dl_iterate_phdr dladdr dladdr1 dlinfo execl execle execlp execv execve execveat
    execvp execvpe fexecve fork getaddrinfo getcontext longjmp makecontext memfd_create openat pkey_mprotect
    posix_spawn posix_spawnp process_vm_readv process_vm_writev pthread_sigmask ptrace recvfrom sendto setcontext
    setjmp sigaction sigaltstack siglongjmp signal sigprocmask sigsetjmp swapcontext sysv_signal thrd_create
    userfaultfd vfork
    """.split()
)

_VECTORS = "char uchar short ushort int uint long ulong longlong ulonglong float double"
CUDA_TYPES = frozenset([*(f"{kind}{n}" for kind in _VECTORS.split() for n in range(1, 5)), "dim3"])
"""Types that CUDA's headers define, ``float2`` for instance, aligned otherwise than a struct of as many floats in C."""


@functools.cache
def _declared() -> frozenset[str]:
    declared = parse_c(_INCLUDED, "headers.c").declared_functions
    return (frozenset(declared) | frozenset(_CUDA.split())) - _OVERLOADED


def why_not_entry(name: str) -> str | None:
    """Why a function of this name cannot be replaced by one in CUDA; `None` where it can."""
    if _of_runtime(name):
        return f"CUDA's runtime calls the C library's `{name}`, and would call this function instead"
    if name in _declared():
        return f"CUDA's headers have a function `{name}` of their own"
    return None


def runtime_calls(name: str) -> bool:
    """Whether CUDA's runtime would call, or read, what the user's C has of this name, where both are in one program."""
    return _of_runtime(name) or name in _RUNTIME_DECLARED | _DRIVER or _API.fullmatch(name) is not None


def kept_name(entry: str, name: str) -> str:
    """What ``NAME_host.c`` calls a function or variable of such a name."""
    return f"{entry}_{name}"


def is_taken(name: str) -> bool:
    """Whether generated code had better call a helper of this name something else."""
    return (
        _of_runtime(name)
        or _API.fullmatch(name) is not None
        or name in _SUSPICIOUS
        or name in _OVERLOADED
        or name in _declared()
    )


def _of_runtime(name: str) -> bool:
    return name in _RUNTIME or name.startswith(_THREADS)
