"""JSONPath, the older query language of ASL: paths, templates, intrinsic functions, choice
rules.
"""

from __future__ import annotations
