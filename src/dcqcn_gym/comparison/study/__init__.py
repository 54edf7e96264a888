"""Studies of many runs as data: plan -> runs -> results -> metrics -> tables.

- *Plan*: a TOML file of ``configs/studies`` (:class:`~dcqcn_gym.comparison.study.plan.Study`):
  cases (a scenario with changes), entries (a tuner with arguments and changes), seeds, fresh seeds,
  tables.
- *Runs*: every entry on every case with every seed is a
  :class:`~dcqcn_gym.runs.trials.Trial`: ``OUT/CASE/ENTRY/seedN.jsonl``, and what it recommends on
  fresh seeds beside it. A second call makes what is missing.
- *Results*: ``study.json`` holds the plan and ``results.json`` a line per case and entry.
- *Metrics*: :data:`~dcqcn_gym.report.metrics.METRICS`, the one table of what a log says.
- *Tables*: :data:`~dcqcn_gym.comparison.study.tables.TABLES`, a function per kind of table.

A new study is a file; a new kind of table is a function and its name.
"""
