"""The rules about launches, and the screen of names."""

from __future__ import annotations

import pytest

from cudaperf_agent.cuda.cheats import CaseLaunches, grows, screen, unlaunched


def launches(*pairs: tuple[int, int]) -> list[CaseLaunches]:
    return [CaseLaunches(elements, 1 if threads else 0, threads) for elements, threads in pairs]


def test_a_launch_per_element_grows() -> None:
    assert grows(launches((1, 256), (257, 512), (1000, 1024)))


def test_one_thread_or_one_block_for_everything_does_not() -> None:
    assert not grows(launches((1, 1), (2000, 1)))
    assert not grows(launches((1, 256), (2000, 256)))


def test_a_grid_sized_to_the_device_is_wide_enough() -> None:
    assert grows(launches((1, 132 * 256), (2000, 132 * 256)))


def test_small_cases_decide_nothing() -> None:
    assert grows(launches((1, 256), (200, 256)))


def test_nothing_launched_is_found_whatever_is_empty() -> None:
    assert unlaunched(launches((0, 0), (5, 0), (100, 0))) is not None
    assert unlaunched(launches((0, 0), (5, 256), (100, 256))) is None
    assert unlaunched(launches((5, 256), (100, 0))) is not None
    assert unlaunched(launches((0, 0))) is None


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("void *p = dlsym(RTLD_DEFAULT, name);", True),
        ("int clock_gettime(clockid_t c, timespec *t)", True),
        ("std::thread worker(f);", True),
        ('FILE *f = fopen("/proc/self/maps", "r");', True),
        ("extern const char *cudaperf_emulator_report();", True),
        ("// dlsym(RTLD_DEFAULT, name) would be a cheat", False),
        ('printf("fork(");', False),
        ("grid.connect(left, right); obj->signal(3);", False),
        ("float signal = x[i] * 2.0f;", False),
        ("int threads = 256; async = true;", False),
    ],
)
def test_the_screen_finds_calls_and_not_words(line: str, found: bool) -> None:
    finding = screen(f"// first line\n{line}\n")
    assert (finding is not None) == found
    if finding:
        assert finding.line == 2
