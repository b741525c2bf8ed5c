"""The program: ``svc`` of an installation, ``manage.py`` of a checkout, ``python -m svc_project``."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run the command that the arguments name, and exit with its status."""
    if sys.argv[1:2] == ["serve"]:
        # The parent of the serving processes needs nothing of Django, which each of them loads.
        from svc_project.serving.supervisor import main as serve

        sys.exit(serve(sys.argv[2:]))
    if sys.argv[1:2] == ["serve_process"]:
        from core import garbage

        garbage.wait_for_the_start()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "svc_project.settings")
    from svc_project.command_line import run

    sys.exit(run(sys.argv))


if __name__ == "__main__":
    # By its path, as processes start it that another one needs, Python looks for modules in its folder.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    main()
