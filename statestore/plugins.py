"""Plugins: how backends are found, and how a URL becomes a store."""

from __future__ import annotations
