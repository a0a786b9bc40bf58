"""The long description on the package index: README.md with links to the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class LongDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        files = f"{metadata['urls']['Repository']}/blob/main/"
        readme = Path(self.root, "README.md").read_text(encoding="utf-8")
        # A relative link works in a checkout; on the index it would lead nowhere.
        text = re.sub(r"\]\((?!https?://|#)", f"]({files}", readme)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
