#!/usr/bin/env python
"""The command line of a checkout: the same as ``svc`` of an installation."""

from svc_project.__main__ import main

if __name__ == "__main__":
    main()
