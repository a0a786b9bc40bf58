"""The local cloud: a whole Holdfast stack in one process on the developer's machine. It stores data
in SQLite or in moto (an emulator of AWS), and delivers messages to the handlers itself (`pump`).
"""

from __future__ import annotations
