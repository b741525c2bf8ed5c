#!/usr/bin/env python
"""Django's command line for this project."""

import os
import sys


def main() -> None:
    """Run a command. A setting that is not valid ends it with one line and status 2."""
    if sys.argv[1:2] == ["serve"]:
        # The parent of the serving processes needs nothing of Django, which each of them loads.
        from svc_project.serving.supervisor import main as serve

        sys.exit(serve(sys.argv[2:]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.stderr.write(f"svc: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
