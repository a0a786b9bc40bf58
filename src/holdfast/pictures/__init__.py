"""Pictures of state machines: definitions in, SVG or Mermaid text out. See docs/how-to/pictures.md."""
