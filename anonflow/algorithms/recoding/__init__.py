"""Methods that publish a column's values at levels: one for the whole table, or one for each round."""
