"""How the cost of each operation grows with what is there: ``python -m benchmarks.growth``."""
