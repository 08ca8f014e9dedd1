"""The command line: `statestore …`."""
