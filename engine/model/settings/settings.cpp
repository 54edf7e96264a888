#include "model/settings/settings.hpp"

#include <stdexcept>
#include <string>

#include "model/fabric/ecn_knobs.hpp"
#include "model/fabric/pfc_knobs.hpp"
#include "model/schemes/dcqcn_knobs.hpp"

namespace dcqcn {
namespace {

void derive(NicSetting& s) {
  if (s.time_reset < 1 || s.reduce_period < 1 || s.alpha_period < 1 || s.min_rate < 1) {
    throw std::invalid_argument("timers and rp_min_rate must be above 0");
  }
  s.decay = std::make_shared<DecayTable>(s.g / 1024.0);
}

void derive(EcnSetting& e) {
  if (e.kmax < e.kmin || e.pmax > 1.0) {
    throw std::invalid_argument("expected 0 <= kmin <= kmax and 0 <= pmax <= 1");
  }
  e.slope = e.kmax > e.kmin ? e.pmax / static_cast<double>(e.kmax - e.kmin) : 0.0;
}

template <class Setting, std::size_t N>
Setting checked(const std::array<Knob<Setting>, N>& knobs, const double* si, const char* what) {
  try {
    Setting setting;
    put_all(setting, knobs, si);
    derive(setting);
    return setting;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(std::string(what) + " setting: " + error.what());
  }
}

}  // namespace

NicSetting::NicSetting() {
  put_defaults(*this, kDcqcnKnobs);
  derive(*this);
}

NicSetting NicSetting::from_si(const double* v) { return checked(kDcqcnKnobs, v, "NIC"); }

EcnSetting::EcnSetting() {
  put_defaults(*this, kEcnKnobs);
  derive(*this);
}

EcnSetting EcnSetting::from_si(const double* v) { return checked(kEcnKnobs, v, "ECN"); }

EcnSetting EcnSetting::with_pfc(const double* v) {
  EcnSetting setting = from_si(v);
  const double alpha = v[kEcnKnobs.size()];
  put_all(setting, kPfcKnobs, &alpha);
  if (setting.pfc_alpha <= 0) {
    throw std::invalid_argument("PFC setting: pfc_alpha must be above 0");
  }
  return setting;
}

}  // namespace dcqcn
