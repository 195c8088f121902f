"""A decided run as text: for a terminal, a file, a program."""
