"""Tables larger than memory: the same flow in pieces on disk, with the same result for the same seed.

The source is read piece by piece (:mod:`reading`, :mod:`scan`); each piece is coded and sorted, the pieces are merged into
one lexicographic order (:mod:`sorting`), units of partitions are worked on (:mod:`units`), and what is published is dealt
to shelves and shuffled there (:mod:`releasing`). No task holds more than a piece, a unit or a shelf, and the client holds
none. What is put aside lies in the owner's folder (:mod:`spill`), which all workers must reach, and is gone afterwards.
"""

from anonflow.engine.large.asked import pieces_of
from anonflow.engine.large.driver import run_large

__all__ = ["pieces_of", "run_large"]
