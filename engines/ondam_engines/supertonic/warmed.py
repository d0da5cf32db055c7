"""Whether all is made that ``warm`` makes: for ``ondam doctor``. Makes nothing."""

from __future__ import annotations

import sys

from ondam_engines.supertonic.warm import main

if __name__ == "__main__":
    sys.exit(main(look=True))
