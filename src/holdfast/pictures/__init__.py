"""Pictures of state machines: from definitions to SVG or Mermaid. See docs/how-to/pictures.md."""
