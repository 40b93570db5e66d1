"""Methods that publish columns at levels: one level for the whole table, or one for each round."""
