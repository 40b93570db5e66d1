"""The loss of an analysis: originals compared with plausible tables. A suppressed row counts as lost in all measures."""
