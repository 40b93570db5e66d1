"""Where a table lies while a flow is run over it: rows in memory, or pieces on disk; one interface."""
