"""How people write numbers and dates: forms that are recognized, read and written."""
