"""Runs in the tools in which people watch theirs: one reader of logs, and an exporter for each."""
