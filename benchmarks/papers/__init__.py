"""Figures and tables of the papers, measured again: what they claim, and what comes out here.

One figure is one short file in ``figures/``; :mod:`dcqcn_gym.benchmarks.papers.figure` says how.
"""
