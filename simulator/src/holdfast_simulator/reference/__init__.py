"""The reference interpreter: an independent implementation of the language."""

from __future__ import annotations
