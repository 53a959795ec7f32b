"""What is known of the C library: which functions compute, which copy, and which reach outside the program."""

from __future__ import annotations

COPIES = frozenset({"memcpy", "memmove", "__builtin_memcpy", "__builtin_memmove"})
"""``f(to, from, bytes)``."""

FILLS = frozenset({"memset", "__builtin_memset"})
"""``f(to, value, bytes)``."""

READERS = frozenset({"memcmp", "strlen", "strcmp", "strncmp", "strchr", "strrchr", "memchr", "free", "strnlen"})
"""Functions that change nothing behind their pointer arguments."""

CONSOLE = frozenset(
    {"printf", "puts", "putchar", "putc", "fputc", "fputs", "fprintf", "vprintf", "vfprintf", "fwrite", "fflush"}
    | {"scanf", "fscanf", "getchar", "getc", "fgetc", "fgets", "ungetc", "fread", "getline", "getdelim", "feof"}
    | {"ferror", "perror", "setvbuf", "setbuf", "putchar_unlocked", "getchar_unlocked", "fputs_unlocked", "clearerr"}
    | {"getc_unlocked", "putc_unlocked", "fread_unlocked", "fwrite_unlocked", "__isoc99_scanf", "__isoc99_fscanf"}
)
"""Standard input and output: allowed in a whole program only."""

FILES = frozenset(
    {"fopen", "fclose", "freopen", "fdopen", "fseek", "ftell", "rewind", "remove", "rename", "tmpfile", "open", "close"}
    | {"creat", "read", "write", "lseek", "mmap", "munmap", "socket", "connect", "send", "recv", "popen", "pclose"}
    | {
        "opendir",
        "readdir",
        "stat",
        "fstat",
        "unlink",
        "mkdir",
        "dlopen",
        "dlsym",
        "ioctl",
        "openat",
        "pread",
        "pwrite",
    }
)
"""Files, sockets and devices: never allowed."""

OUTSIDE = frozenset(
    {"rand", "srand", "random", "srandom", "drand48", "rand_r", "time", "clock", "gettimeofday", "clock_gettime"}
    | {"getenv", "setenv", "system", "fork", "execve", "execl", "execvp", "kill", "signal", "sigaction", "raise"}
    | {
        "setjmp",
        "longjmp",
        "_setjmp",
        "sigsetjmp",
        "siglongjmp",
        "atexit",
        "quick_exit",
        "sleep",
        "usleep",
        "nanosleep",
    }
    | {
        "pthread_create",
        "pthread_join",
        "pthread_mutex_lock",
        "thrd_create",
        "localtime",
        "gmtime",
        "strtok",
        "setlocale",
    }
    | {"syscall", "getpid", "arc4random", "getrandom", "omp_get_thread_num", "omp_get_num_threads", "va_start"}
)
"""The clock, random state, the environment, processes, threads and jumps."""

PROGRAM_ONLY = frozenset({"exit", "_Exit", "_exit"})
"""Ends the process: allowed in a whole program only."""

PURE = frozenset(
    {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "abs", "labs", "llabs", "div", "ldiv"}
    | {"qsort", "bsearch", "atoi", "atol", "atoll", "atof", "strtol", "strtoul", "strtoll", "strtoull", "strtod"}
    | {"strtof", "abort", "__assert_fail", "__assert", "lldiv", "imaxabs", "alloca", "exit", "snprintf", "sprintf"}
    | {"sscanf", "strdup", "strndup"}
)
"""Known to depend on their arguments only (memory apart), beside the headers in `PURE_HEADERS`."""

PURE_HEADERS = ("math", "tgmath", "string", "strings", "ctype", "fenv", "complex", "cmathcalls", "stdbit")
"""Beginnings of the names of headers all of whose functions compute only."""
