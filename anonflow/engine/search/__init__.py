"""A target instead of a method: methods, k, partition sizes and diversity are searched, best first."""
