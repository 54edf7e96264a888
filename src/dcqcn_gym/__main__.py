"""``python -m dcqcn_gym`` is the command ``dcqcn-gym``."""

from __future__ import annotations

from dcqcn_gym.cli import main

if __name__ == "__main__":
    main()
