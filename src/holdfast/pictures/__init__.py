"""Pictures of state machines: definitions in, SVG or Mermaid text out. See docs/pictures.md."""
