"""Logs in buckets."""
