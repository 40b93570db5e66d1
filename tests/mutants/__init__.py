"""The yardstick of the tests: small faults that are put into the package one at a time, to see which tests notice them."""
