"""The flow format: specification, loader, versions, JSON Schema."""
