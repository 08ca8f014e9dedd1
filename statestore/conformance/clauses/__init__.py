"""The clauses, one module for each part of the contract."""
