"""A model of the calls that state machines make: the rules that AWS documents."""
