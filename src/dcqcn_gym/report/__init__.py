"""Turns the logs of a run into one self-contained page."""

from dcqcn_gym.report.page import build_report

__all__ = ["build_report"]
