"""`python -m tirlite`: the command line."""

from tirlite.cli.main import main

raise SystemExit(main())
