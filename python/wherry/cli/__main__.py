# SPDX-License-Identifier: Apache-2.0
"""`python -m wherry.cli` does the same as `python -m wherry`."""

from wherry.cli.root import main

if __name__ == "__main__":
    raise SystemExit(main())
