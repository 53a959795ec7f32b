"""What surrounds the kernels of a generated source: support code, and which scalars need a place in device memory."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cudaperf_agent.codegen.printer import spelled
from cudaperf_agent.codegen.scalars import declared, reads
from cudaperf_agent.codegen.steps import (
    Fetch,
    HostBranch,
    HostLoop,
    HostStatement,
    Parallel,
    Plan,
    Reduce,
    ScalarWork,
    Step,
    Symbol,
)
from cudaperf_agent.tasks import ir
from cudaperf_agent.tasks.lower_loops import assigned


def shared_scalars(plan: Plan) -> frozenset[str]:
    """Device scalars that one step leaves for another, or for itself in a later turn of a host loop."""
    places: dict[str, int] = {}

    def count(steps: Sequence[Step], weight: int) -> None:
        for step in steps:
            if isinstance(step, HostLoop):
                count(step.steps, 2)
                names = {fetch.name for fetch in step.tests}
            elif isinstance(step, HostBranch):
                count((*step.then, *step.otherwise), weight)
                names = set()
            else:
                names = _mentioned(step)
            for name in names & plan.device_scalars:
                places[name] = places.get(name, 0) + weight

    count(plan.steps, 1)
    return frozenset(name for name, number in places.items() if number > 1)


def _mentioned(step: Step) -> set[str]:
    statements: list[ir.Stmt] = []
    if isinstance(step, Parallel | Reduce):
        statements.append(step.nest.rebuilt())
    if isinstance(step, Reduce):
        statements += [*step.before, *step.after]
    if isinstance(step, ScalarWork):
        statements += step.statements
    if isinstance(step, HostStatement):
        statements.append(step.statement)
    names = {step.name} if isinstance(step, Fetch) else set()
    return names | set(reads(*statements)) | assigned(tuple(statements)) | declared(statements)


def without_idle(body: list[str], symbols: dict[str, Symbol]) -> list[str]:
    """Host lines without declarations of variables that only kernels use."""
    words = [set(re.findall(r"\w+", line)) for line in body]
    idle = {
        f"{spelled(symbol.type)} {name};"
        for name, symbol in symbols.items()
        if not symbol.pointer and sum(name in w for w in words) == 1
    }
    return [line for line in body if line.strip() not in idle]


BITS = """
// The bytes of a value as a value of another type of the same size.
template <typename To, typename From> static __host__ __device__ To bits_as(From from)
{
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
"""


BLOCKS = """
static unsigned int blocks_for(long long count, long long block, long long most)
{
    const long long blocks = (count + block - 1) / block;
    return (unsigned int)(blocks < most ? blocks : most);
}
"""


SCRATCH = """
// Temporary device memory, given back in stream order when the call returns.
struct Scratch {
    cudaStream_t stream;
    void *blocks[16];
    int used = 0;
    cudaError_t status = cudaSuccess;
    explicit Scratch(cudaStream_t s) : stream(s) {}
    template <typename T> T *get(long long count)
    {
        void *block = nullptr;
        if (count < 1)
            count = 1;
        if (used == 16)
            status = cudaErrorMemoryAllocation;
        else if (status == cudaSuccess)
            status = cudaMallocAsync(&block, (size_t)count * sizeof(T), stream);
        if (block != nullptr)
            blocks[used++] = block;
        return (T *)block;
    }
    ~Scratch()
    {
        while (used > 0)
            cudaFreeAsync(blocks[--used], stream);
    }
};
"""
