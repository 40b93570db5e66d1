"""How well the columns of a table identify people, before anything is generalized."""
