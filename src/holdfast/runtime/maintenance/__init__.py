"""The sweeper, the quarantine and the diagnostics: for executions that should continue and do
not.
"""

from __future__ import annotations
