"""The compiler: it translates workflows in Python to state machines in Amazon States Language
(ASL).
"""

from __future__ import annotations
