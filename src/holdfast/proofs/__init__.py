"""Facts about a workflow before it runs: what can be proven about its state machine, and problems
found.
"""
