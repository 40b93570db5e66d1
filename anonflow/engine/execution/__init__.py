"""How a flow's partitions are planned, computed and combined."""
