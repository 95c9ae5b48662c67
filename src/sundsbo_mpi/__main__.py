"""``python -m sundsbo_mpi`` is the command ``sundsbo-mpi``."""

from sundsbo_mpi.cli import main

if __name__ == "__main__":
    main()
