"""Methods whose result is a k-regular generalization graph."""
