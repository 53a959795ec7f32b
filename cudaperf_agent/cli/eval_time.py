"""`cudaperf eval time`: the kernels that evaluations on the emulator chose, timed on this GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from cudaperf_agent.cli.output import say
from cudaperf_agent.errors import UsageError

if TYPE_CHECKING:
    from cudaperf_agent.cuda.verifier import VerifierConfig
    from training.evaluation.kernel_times import Part
    from training.evaluation.plan import Plan, Plans


@dataclass(frozen=True, slots=True)
class Fineness:
    """How finely candidates are timed.

    Attributes:
        samples: Timed calls of a kernel, and of the C at most.
        contents: Content sets at most.
        c_seconds: A size is not made larger once the C takes this long; its timed calls take some eight times as long
            together, where a few are enough for that.
        device_times: Kernels are timed without copies, in a search or at all.
    """

    samples: int = 24
    contents: int = 24
    c_seconds: float = 0.5
    device_times: bool = False

    def told(self, device_times: str) -> str:
        """What is unusual of it, in words; `device_times` are those for times without copies."""
        told = [f"{self.samples} timed calls of a kernel"] if self.samples != USUAL.samples else []
        told += [f"at most {self.contents} sets of inputs"] if self.contents != USUAL.contents else []
        told += [f"sizes at which the C takes {self.c_seconds:g} s"] if self.c_seconds != USUAL.c_seconds else []
        return ", ".join([*told, *([device_times] if self.device_times else ())])

    def config(self, tasks: int) -> VerifierConfig:
        """Numbers of a verifier that times so many tasks at once."""
        from cudaperf_agent.cuda.baselines import ReferenceConfig
        from cudaperf_agent.cuda.timing import TIMING
        from cudaperf_agent.cuda.verifier import VerifierConfig

        timing = replace(
            TIMING,
            samples=self.samples,
            contents=self.contents,
            fewest_contents=min(TIMING.fewest_contents, self.contents),
            reference_seconds=self.c_seconds,
        )
        usual = ReferenceConfig()
        references = replace(
            usual,
            samples=min(self.samples, usual.samples),
            seconds=usual.seconds * self.c_seconds / TIMING.reference_seconds,
        )
        return VerifierConfig(timing=timing, references=references, tasks_at_hand=tasks)


USUAL = Fineness()


def time_(
    evaluations: Annotated[list[str], typer.Argument(metavar="NAME...", help="Evaluations of the same suite.")],
    time_budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="No new task begins after so many seconds.")
    ] = None,
    samples: Annotated[int, typer.Option(min=5, help="Timed calls of a kernel.")] = USUAL.samples,
    contents: Annotated[
        int, typer.Option(min=1, help="Input sets that timed calls go through; fewer are cheaper.")
    ] = USUAL.contents,
    c_seconds: Annotated[
        float,
        typer.Option(metavar="SECONDS", min=0.001, help="Sizes are not made larger once the C takes this long."),
    ] = USUAL.c_seconds,
    tasks_at_once: Annotated[
        int, typer.Option(metavar="N", min=1, help="Tasks at work at once; each keeps hundreds of megabytes of inputs.")
    ] = 2,
    device_times: Annotated[
        bool, typer.Option("--device-times", help="Time kernels without copies, and trace nothing: half the time.")
    ] = False,
    part: Annotated[
        str, typer.Option(metavar="K/N", help="The K-th of N parts of the tasks: processes on N GPUs share them.")
    ] = "1/1",
) -> int:
    """Test and time on this GPU the kernels that evaluations on the emulator chose; each kernel once.

    The same command goes on where it was stopped. Reports and comparisons then have speeds.
    """
    with can_go_on():
        numbers = Fineness(samples, contents, c_seconds, device_times)
        # Races and bounds were looked for on the emulator already.
        config = replace(numbers.config(tasks_at_once), also_emulate=False)
        if device_times:
            config = replace(config, whole="none", trace=False)
        left = _time(evaluations, time_budget, config, numbers.told("no times with copies"), part_of(part))
        if left:
            say(f"{left} tasks are left; the same command goes on")
        return 0


def _time(names: list[str], seconds: float | None, config: VerifierConfig, coarsely: str, part: Part) -> int:
    from cudaperf_agent.cli.parts import open_store
    from cudaperf_agent.cuda.verifier import Verifier
    from cudaperf_agent.errors import BackendUnavailable
    from cudaperf_agent.settings import load_settings
    from graph import loop
    from training.evaluation.kernel_times import KernelTimes, time_kernels
    from training.evaluation.plan import Plans

    plans = Plans()
    found = [plan_of(name, plans) for name in names]
    for plan in found:
        if plan.backend == "gpu":
            raise UsageError(f"{plan.name} was tested and timed on a GPU already", where="NAME", hint="leave it out")

    async def measured() -> int:
        verifier = Verifier(config)
        try:
            if verifier.backend != "gpu":
                raise BackendUnavailable("there is no GPU to time on", hint="run this where there is one")
            with open_store(load_settings().settings) as store:
                times = KernelTimes.load(plans.folder, coarsely)
                at_once = config.tasks_at_hand
                return await time_kernels(
                    found, store, verifier, times, at_once=at_once, seconds=seconds, part=part, say=say
                )
        finally:
            await verifier.aclose()

    return loop.run(measured())


def part_of(text: str) -> Part:
    """The part that K/N names.

    Raises:
        UsageError: It names none.
    """
    from training.evaluation.kernel_times import Part

    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise UsageError(f"`{text}` is no part", where="--part", hint="1/2 and 2/2, say, are the halves")
    return Part(int(number), int(parts))


def plan_of(name: str, plans: Plans) -> Plan:
    """The plan of an evaluation.

    Raises:
        UsageError: There is none of that name.
    """
    plan = plans.load(name)
    if plan is None:
        there = ", ".join(plans.names()) or "none yet: cudaperf eval run --suite handed"
        raise UsageError(f"there is no evaluation `{name}`", where=str(plans.folder), hint=f"there are: {there}")
    return plan


@contextmanager
def can_go_on() -> Iterator[None]:
    """An interruption at any point of the command, a termination too, ends in the word that it can be gone on with."""
    from cudaperf_agent.cli.outcome import RunEnded
    from cudaperf_agent.cli.signals import termination_interrupts

    try:
        with termination_interrupts():
            yield
    except KeyboardInterrupt:
        raise RunEnded("interrupted", "interrupted", hint="the same command goes on with it") from None
