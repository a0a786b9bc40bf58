"""`python -m holdfast`: the command line without its script."""

from __future__ import annotations

import sys

from holdfast.cli import main

sys.exit(main())
