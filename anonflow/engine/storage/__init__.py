"""The storage of a table during a run: rows in memory, or pieces on disk, with one interface."""
