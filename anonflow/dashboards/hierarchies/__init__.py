"""Building and editing hierarchies on a screen."""
