"""The hosted dashboard: server, gateway, accounts and workers."""
