"""The commands of ``dcqcn-gym``, one file each. Heavy imports wait until a command runs."""
