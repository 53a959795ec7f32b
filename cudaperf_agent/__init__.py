"""CudaPerf: turns C and PyTorch code into fast, tested CUDA."""

__version__ = "0.1.0"
