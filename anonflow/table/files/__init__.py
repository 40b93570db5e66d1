"""Read files of tables, and read and write the description beside them."""
