"""The language front end: what workflows are written with, and the compiler to ASL."""

from __future__ import annotations
