"""Run folders of other simulators, whole: HPCC's and htsim's, to a scenario and back."""
