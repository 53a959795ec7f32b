"""nvcc in the sandbox, under limits, its messages parsed and its results cached by content."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cudaperf_agent.cuda.blame import broken, is_candidates, refuse_system_trouble
from cudaperf_agent.cuda.cached import touch
from cudaperf_agent.cuda.diagnostics import KernelResources, parse_diagnostics, parse_resources
from cudaperf_agent.cuda.link import OWN_FIRST
from cudaperf_agent.cuda.reach import trace_flags, traced
from cudaperf_agent.cuda.toolchain import DEFAULT_ARCH, Nvcc
from cudaperf_agent.cuda.verdict import Diagnostic
from cudaperf_agent.errors import BackendUnavailable
from cudaperf_agent.execution.child import ChildResult, Limits, run_child
from cudaperf_agent.execution.native import Wrap
from cudaperf_agent.execution.paths import cache_dir

CANDIDATE_FILE = "candidate.cu"
LINKED_FILE = "linked.c"
LINKED_OBJECT = "linked.o"
Kind = Literal["cubin", "library", "program"]
COMPILE_LIMITS = Limits(seconds=60.0, memory=3 << 30, file_bytes=256 << 20, output=256 << 10)
_EMPTY = "__global__ void cudaperf_trial() {}\n"
# nvcc's words for an argument of the linker's.
_TRACE = tuple(word for flag in trace_flags() for word in ("-Xlinker", flag.removeprefix("-Wl,")))
_SUFFIX: dict[Kind, str] = {"cubin": "cubin", "library": "so", "program": "out"}


@dataclass(frozen=True, slots=True)
class CompileConfig:
    """How candidates are compiled.

    Attributes:
        arch: Real architecture; native code only, no PTX.
        flags: Common flags.
        limits: Per compiler run. A bomb of templates ends here.
        source_bytes: Longest source that is given to a compiler at all.
    """

    arch: str = DEFAULT_ARCH
    flags: tuple[str, ...] = ("-O3", "-std=c++17", "-Xptxas", "-v")
    limits: Limits = COMPILE_LIMITS
    source_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Compiled:
    """What one compiler run gave.

    Attributes:
        ok: Whether `artefact` is there.
        artefact: Cubin, shared object or program, in the cache.
        diagnostics: Messages.
        resources: What ptxas says of each kernel.
        digest: SHA-256 over source, flags and compiler.
        seconds: Wall time of the run that made it.
        cached: It was there already.
        limited: A limit of time or memory ended the compiler; another try may go otherwise.
        reached: Traced names that the candidate refers to or defines (`reach.traced`); of a cubin, none.
    """

    ok: bool
    artefact: Path | None
    diagnostics: tuple[Diagnostic, ...]
    resources: tuple[KernelResources, ...]
    digest: str
    seconds: float
    cached: bool = False
    limited: bool = False
    reached: tuple[str, ...] = ()


def flags_for(nvcc: Nvcc, kind: Kind, config: CompileConfig) -> list[str]:
    """nvcc's flags, without files."""
    number = config.arch.removeprefix("sm_")
    native = ["-gencode", f"arch=compute_{number},code={config.arch}"]
    if kind == "cubin":
        return [*config.flags, *native, "-cubin"]
    shared = ["-shared", "-Xcompiler", "-fPIC"] if kind == "library" else []
    return [*config.flags, *native, *shared, *(f"-L{d}" for d in nvcc.library_dirs), *_TRACE]


async def compile_cuda(
    nvcc: Nvcc,
    text: str,
    kind: Kind,
    *,
    linked: str | None = None,
    lines: int | None = None,
    config: CompileConfig | None = None,
    wrap: Wrap | None = None,
) -> Compiled:
    """Compile one file, or take the result from the cache.

    Args:
        nvcc: The compiler.
        text: The whole ``.cu``.
        kind: ``cubin`` is quick and rejects what a full build rejects; ``library`` and ``program`` can be run.
        linked: C text to compile with the machine's gcc and link with it.
        lines: Lines of `text` that are the candidate's own; all where `None`.
        config: Flags and limits.
        wrap: The sandbox.

    Raises:
        BackendUnavailable: nvcc, the sandbox or the disk fails, whatever the candidate is.
    """
    config = config or CompileConfig()
    lines = lines if lines is not None else text.count("\n") + 1
    flags = flags_for(nvcc, kind, config)
    digest = hashlib.sha256("\0".join([text, linked or "", str(lines), nvcc.version, *flags]).encode()).hexdigest()
    if len(text.encode()) > config.source_bytes:
        message = f"the source is longer than {config.source_bytes >> 10} KiB"
        return Compiled(False, None, (Diagnostic("error", message),), (), digest, 0.0)
    home = cache_dir() / "nvcc" / digest[:2] / digest
    known = _load(home, kind, digest)
    if known is not None:
        return known
    job = _Job(nvcc, text, linked, kind, lines, tuple(flags), digest, config, wrap)
    try:
        attempt = await _attempt(job)
        if not attempt.settled:
            # No line of the candidate is to blame. nvcc must work on an empty file; if it does, once more.
            empty = replace(job, text=_EMPTY, linked=None, kind="cubin", flags=tuple(flags_for(nvcc, "cubin", config)))
            trial = await _attempt(empty, keep=False)
            if not trial.compiled.ok:
                raise broken("nvcc", trial.said)
            attempt = await _attempt(job)
        return attempt.kept or attempt.compiled
    except OSError as error:
        raise BackendUnavailable(
            f"nothing can be compiled: {error}", hint=f"Check the space and the rights in {cache_dir()} and of nvcc."
        ) from error


@dataclass(frozen=True, slots=True)
class _Job:
    nvcc: Nvcc
    text: str
    linked: str | None
    kind: Kind
    lines: int
    flags: tuple[str, ...]
    digest: str
    config: CompileConfig
    wrap: Wrap | None


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One try. `settled`: it worked, or it is known to be the candidate's doing, or a limit ended it."""

    compiled: Compiled
    said: str
    settled: bool
    kept: Compiled | None = None


async def _attempt(job: _Job, keep: bool = True) -> _Attempt:
    """Compile in a folder of its own, and keep the result if it can be relied on."""
    folder = Path(tempfile.mkdtemp(prefix="cudaperf-nvcc-"))
    try:
        artefact = folder / f"candidate.{_SUFFIX[job.kind]}"
        (folder / CANDIDATE_FILE).write_text(job.text)
        argv = [str(job.nvcc.path), *job.flags, "-o", str(artefact), CANDIDATE_FILE]
        if job.linked is not None:
            (folder / LINKED_FILE).write_text(job.linked)
            made = str(folder / LINKED_OBJECT)
            argv.append(made)
            gcc = [shutil.which("gcc") or "gcc", "-O2", "-fPIC", OWN_FIRST, "-w", "-c", "-o", made, LINKED_FILE]
            child = await confined(gcc, folder, job.config, job.wrap)
            if not child.ok:
                return _read(job, child, None)
        attempt = _read(job, await confined(argv, folder, job.config, job.wrap), artefact)
        if keep and (attempt.compiled.ok or is_candidates(attempt.compiled.diagnostics)):
            home = cache_dir() / "nvcc" / job.digest[:2] / job.digest
            return replace(attempt, kept=_keep(home, job.kind, attempt.compiled))
        return attempt
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _read(job: _Job, child: ChildResult, artefact: Path | None) -> _Attempt:
    """What a compiler run gave.

    Raises:
        BackendUnavailable: Its messages are of a full disk or the like.
    """
    reached, said = traced((child.stdout + b"\n" + child.stderr).decode("utf-8", "replace"), [LINKED_OBJECT])
    diagnostics = parse_diagnostics(said, file=CANDIDATE_FILE, lines=job.lines)
    limited = child.timed_out or child.out_of_memory
    if limited:
        limit = f"{job.config.limits.seconds:g} s" if child.timed_out else f"{job.config.limits.memory >> 20} MiB"
        diagnostics = (Diagnostic("error", f"the compiler was stopped at its limit of {limit}"), *diagnostics)
    # What the linker says comes last, so that a flood of messages would hide it.
    flooded = child.output_cut and job.kind != "cubin"
    if flooded:
        cut = f"the compiler printed more than {job.config.limits.output >> 10} KiB: leave out what makes it do so"
        diagnostics = (Diagnostic("error", cut), *diagnostics)
    ok = not flooded and artefact is not None and child.ok and artefact.is_file() and not artefact.is_symlink()
    if not ok and not any(d.severity == "error" for d in diagnostics):
        ending = said.strip()[-400:] or f"exit status {child.returncode}"
        diagnostics = (Diagnostic("error", f"the compiler failed: {ending}"), *diagnostics)
    settled = ok or limited or flooded or is_candidates(diagnostics)
    if not settled:
        refuse_system_trouble("nvcc", said)
    resources = parse_resources(said)
    made = artefact if ok else None
    # A limit depends on how busy the machine is, so it is not remembered.
    compiled = Compiled(
        ok, made, diagnostics, resources, job.digest, child.seconds, limited=limited, reached=reached if ok else ()
    )
    return _Attempt(compiled, said, settled)


async def confined(argv: list[str], folder: Path, config: CompileConfig, wrap: Wrap | None) -> ChildResult:
    """Run a compiler in its folder, under the limits, in the sandbox where there is one."""
    return await run_child(
        wrap(argv, folder) if wrap else argv,
        limits=config.limits,
        cwd=folder,
        env={
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LC_ALL": "C",
        },
    )


def _keep(home: Path, kind: Kind, result: Compiled) -> Compiled:
    home.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix="building-", dir=home.parent))
    target = home / f"candidate.{_SUFFIX[kind]}"
    if result.artefact is not None:
        # Copied, not moved: the artefact may belong to the sandbox's user, and must not be changed by anyone later.
        shutil.copyfile(result.artefact, building / target.name)
        (building / target.name).chmod(0o755 if kind == "program" else 0o644)
    record = asdict(result)
    for name in ("artefact", "cached", "limited"):
        record.pop(name)
    (building / "result.json").write_text(json.dumps(record))
    building.chmod(0o755)
    try:
        building.rename(home)
    except OSError:
        shutil.rmtree(building, ignore_errors=True)
        if not home.is_dir():  # else another run was first, with the same content
            raise
    kept = target if result.artefact is not None else None
    return replace(result, artefact=kept)


def _load(home: Path, kind: Kind, digest: str) -> Compiled | None:
    try:
        record: dict[str, Any] = json.loads((home / "result.json").read_text())
    except (OSError, ValueError):
        return None
    artefact = home / f"candidate.{_SUFFIX[kind]}"
    if record["ok"] and not artefact.exists():
        shutil.rmtree(home, ignore_errors=True)
        return None
    touch(home)
    return Compiled(
        record["ok"],
        artefact if record["ok"] else None,
        tuple(Diagnostic(**d) for d in record["diagnostics"]),
        tuple(KernelResources(**r) for r in record["resources"]),
        digest,
        record["seconds"],
        cached=True,
        reached=tuple(record.get("reached", ())),  # not of a cubin that an older version made
    )
