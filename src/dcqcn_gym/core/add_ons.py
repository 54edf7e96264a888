"""What the add-ons of this distribution bring: group of entry points -> name -> ``module:object``.

The core imports no add-on; a line here is loaded when its name is typed, by the registry that loads
the plug-ins of other packages (:mod:`dcqcn_gym.core.registry`). Their names win over those of other
packages, so that results cannot be changed from outside.
"""

from __future__ import annotations

ADD_ONS: dict[str, dict[str, str]] = {
    "dcqcn_gym.backends": {
        "hardware": "dcqcn_gym.hw.backend:HardwareBackend",
        "native-devices": "dcqcn_gym.hw.native_devices:NativeDevicesBackend",
        "ns3": "dcqcn_gym.extras.ns3.backend:Ns3Backend",
    },
    "dcqcn_gym.commands": {
        "train": "dcqcn_gym.extras.learn.commands:train",
        "evaluate": "dcqcn_gym.extras.learn.commands:evaluate",
        "network": "dcqcn_gym.extras.traffic.network.commands:app",
        "traffic": "dcqcn_gym.extras.traffic.commands:app",
        "show": "dcqcn_gym.extras.workbench.commands:show",
        "settings": "dcqcn_gym.extras.traffic.settings_commands:app",
        "calibrate": "dcqcn_gym.extras.traffic.calibration.commands:calibrate",
        "why": "dcqcn_gym.extras.traffic.why:why",
        "jobs": "dcqcn_gym.extras.jobs.commands:jobs",
        "bench": "dcqcn_gym.benchmarks.leaderboard.commands.bench:app",
        "paper": "dcqcn_gym.benchmarks.papers.commands.paper:app",
        "ns3": "dcqcn_gym.extras.ns3.commands:app",
        "hw": "dcqcn_gym.hw.commands.app:app",
    },
    "dcqcn_gym.monitors": {
        "sflow": "dcqcn_gym.hw.collectors.exporters:SflowMonitor",
        "ipfix": "dcqcn_gym.hw.collectors.exporters:IpfixMonitor",
        "queue-pairs": "dcqcn_gym.hw.collectors.exporters:QueuePairMonitor",
    },
    "dcqcn_gym.plugin_hosts": {
        "process": "dcqcn_gym.benchmarks.leaderboard.tuner_host.tuner:ProcessTuner",
    },
    "dcqcn_gym.tuners": {
        "tpe": "dcqcn_gym.extras.search.optuna_tuners:TpeTuner",
        "cmaes": "dcqcn_gym.extras.search.optuna_tuners:CmaesTuner",
        "cmaes-tiers": "dcqcn_gym.extras.search.optuna_tuners:CmaesTiersTuner",
        "nsga2": "dcqcn_gym.extras.search.optuna_tuners:Nsga2Tuner",
        "qmc": "dcqcn_gym.extras.search.optuna_tuners:QmcTuner",
        "gp": "dcqcn_gym.extras.search.optuna_tuners:GpTuner",
        "cmaes-policy": "dcqcn_gym.extras.search.optuna_tuners:CmaesPolicyTuner",
    },
    "dcqcn_gym.trackers": {
        "tensorboard": "dcqcn_gym.extras.track.trackers:TensorBoard",
        "mlflow": "dcqcn_gym.extras.track.trackers:MLflow",
        "wandb": "dcqcn_gym.extras.track.trackers:WeightsAndBiases",
        "optuna": "dcqcn_gym.extras.track.trackers:Optuna",
    },
}
