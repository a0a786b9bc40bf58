"""Holdfast's AWS resources as CDK constructs; `stack.HoldfastStack` is all of them in one stack.

Nothing is imported here, so that settings and bundling can be used without starting the CDK.
"""

from __future__ import annotations
