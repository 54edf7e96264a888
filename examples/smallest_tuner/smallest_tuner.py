"""The smallest tuner that searches: random nudges of the additive step; the best one counts."""

from dcqcn_gym.core.knobs import Setting
from dcqcn_gym.tuners import Tuner, TunerContext


class Nudge(Tuner):
    """Multiplies the best additive step so far by a random factor."""

    name = "nudge"
    summary = "random nudges of the additive step"

    def start(self, context: TunerContext) -> None:
        """Take the tuner's own random stream: the only randomness a tuner may use."""
        super().start(context)
        self._random = context.generator()

    def ask(self) -> Setting:
        """Return the best setting so far with another additive step."""
        best = self.recommend()
        step = best["rp_ai_rate"] * self._random.uniform(0.5, 2.0)
        return best.replace(self.context.space.clip({"rp_ai_rate": step}))
