"""`python -m cutsvm.cli`, for when the command is not on the PATH."""

import sys

from cutsvm.cli import main

if __name__ == "__main__":
    sys.exit(main())
