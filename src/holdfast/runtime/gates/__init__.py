"""Limits at run time: gates, the queues before them, and the dispensers that let work through."""
