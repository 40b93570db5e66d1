"""What a session has on disk: its folder, uploads, the table that is read, and marks of those it released."""
