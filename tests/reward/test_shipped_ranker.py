"""The ranker in the package: it loads, and prefers what the GPU measured as faster where the difference is plain."""

from cudaperf_agent.features.extract import extract
from cudaperf_agent.reward.structural import shipped_ranker

SOURCE = """
__global__ void scale(const float *x, float *y, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / {stride})
        for (int k = 0; k < {stride}; ++k) y[i * {stride} + k] = 2.0f * x[i * {stride} + k];
}}
extern "C" int scale_device(const float *x, float *y, int n, cudaStream_t stream) {{
    scale<<<(n + {block} - 1) / {block}, {block}, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}}
"""


def scored(*, stride: int, block: int) -> float:
    return shipped_ranker().score(extract(SOURCE.format(stride=stride, block=block), entry="scale"))


def test_neighbouring_lanes_on_neighbouring_elements_score_higher() -> None:
    assert scored(stride=1, block=256) > scored(stride=8, block=256)


def test_the_artefact_names_the_data_it_was_trained_on() -> None:
    assert len(shipped_ranker().data_digest) == 64
