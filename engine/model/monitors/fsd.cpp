#include "model/monitors/fsd.hpp"

#include "model/base/det_math.hpp"

namespace dcqcn {

void LocalFsd::add(FlowState state, std::uint64_t bytes_so_far, double elephant_share) {
  elephants += state == FlowState::kElephant;
  potential += state == FlowState::kPotential;
  mice += state == FlowState::kMouse;
  weighted_elephants += static_cast<std::uint64_t>(elephant_share * 0x1p32);
  ++bins[fsd_bin(bytes_so_far)];
}

void FsdReport::add(const LocalFsd& local) {
  if (local.periods == 0) return;
  const double scale = static_cast<double>(local.periods);
  const double flows = static_cast<double>(local.elephants) + local.potential + local.mice;
  const double heavy = static_cast<double>(local.weighted_elephants) * 0x1p-32;
  elephants += local.elephants / scale;
  potential += local.potential / scale;
  mice += local.mice / scale;
  weighted_elephants += heavy / scale;
  weighted_mice += (flows - heavy) / scale;
  for (std::size_t i = 0; i < kFsdBins; ++i) bins[i] += local.bins[i] / scale;
}

double kl_divergence(double elephants, double mice, double before_elephants, double before_mice) {
  const double e = elephants + 0.5, m = mice + 0.5;
  const double be = before_elephants + 0.5, bm = before_mice + 0.5;
  const double p = e / (e + m), q = be / (be + bm);
  const double r = m / (e + m), s = bm / (be + bm);
  const double kl = p * det_log(p / q) + r * det_log(r / s);
  return kl > 0.0 ? kl : 0.0;  // rounding can leave a tiny negative number
}

void KlTrigger::update(FsdReport& report) {
  report.kl = 0.0;
  report.triggered = false;
  const double elephants = report.weighted_elephants, mice = report.weighted_mice;
  if (!report.known || !(elephants + mice > 0.0)) return;
  if (started_) {
    report.kl = kl_divergence(elephants, mice, elephants_, mice_);
    report.triggered = report.kl > theta_;
  } else {
    report.triggered = true;
  }
  started_ = true;
  elephants_ = elephants;
  mice_ = mice;
}

}  // namespace dcqcn
