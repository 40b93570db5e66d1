"""What an analysis loses: originals and plausible tables side by side. A suppressed row counts as lost in all of it."""
