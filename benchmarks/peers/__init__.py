"""The same work done by statestore and by what people would use instead: ``python -m benchmarks.peers``."""
