"""What AWS documents of the calls that state machines make, written without the product's code."""
