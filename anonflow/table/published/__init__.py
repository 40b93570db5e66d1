"""What is published: the notation of cells, in our own signs and in those of other tools, and the description of a release."""
