"""What is closed by ``async with``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """What is closed where an ``async with`` ends."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    @abstractmethod
    async def aclose(self) -> None:
        """Close it; closing twice is nothing."""
