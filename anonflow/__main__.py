"""``python -m anonflow``: the shell command."""

from anonflow.cli import main

if __name__ == "__main__":
    main()
