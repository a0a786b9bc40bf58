"""Pictures of state machines: definitions in, SVG or Mermaid out. See docs/how-to/pictures.md."""
