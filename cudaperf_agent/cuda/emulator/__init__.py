"""The CPU emulator: `.cu` files compiled with g++ and run on the CPU, with a checker of memory, races and barriers."""

from cudaperf_agent.cuda.emulator.build import BuildLimits, EmulatorBuild, build
from cudaperf_agent.cuda.emulator.compiler import Mode, is_built, runtime_library
from cudaperf_agent.cuda.emulator.report import EmulatorReport, Order, environment, parse_report

__all__ = [
    "BuildLimits",
    "EmulatorBuild",
    "EmulatorReport",
    "Mode",
    "Order",
    "build",
    "environment",
    "is_built",
    "parse_report",
    "runtime_library",
]
