"""The protocol of workers and API: handlers (generators of effects), and the formats of stored
data.
"""

from __future__ import annotations
