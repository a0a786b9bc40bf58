"""Limits at run time: gates (the state of a limit), their queues, and the dispensers that let
waiting attempts begin.
"""
