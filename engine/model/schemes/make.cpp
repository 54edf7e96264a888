#include "model/schemes/make.hpp"

#include "model/knob_tables.hpp"
#include "model/schemes/list.hpp"

namespace dcqcn {
namespace {

// f.template operator()<S>() for every scheme of the lists
template <class... S, class... T, class F>
void for_each_scheme(SchemeList<S...>, SchemeList<T...>, F&& f) {
  (f.template operator()<S>(), ...);
  (f.template operator()<T>(), ...);
}

template <class F>
void for_each_scheme(F&& f) {
  for_each_scheme(BuiltinSchemes{}, ExtraSchemes{}, f);
}

}  // namespace

std::span<const SchemeKnobs> scheme_knobs() {
  static const std::vector<SchemeKnobs> all = [] {
    std::vector<SchemeKnobs> tables;
    for_each_scheme([&]<class S>() { tables.push_back({S::kName, rows_of(S::kKnobs)}); });
    return tables;
  }();
  return all;
}

std::unique_ptr<Scheme> make_scheme(const SchemeSpec& spec, const Transport& transport,
                                    const std::vector<bool>& hosts,
                                    const std::vector<QpReceiver>& receivers) {
  std::unique_ptr<Scheme> made;
  for_each_scheme([&]<class S>() {
    if (spec.name == S::kName) {
      made = std::make_unique<SchemeOf<S>>(spec, transport, hosts, receivers);
    }
  });
  if (made) return made;
  std::string known;
  for (const SchemeKnobs& scheme : scheme_knobs()) {
    known += (known.empty() ? "" : ", ") + std::string(scheme.name);
  }
  spec.fail("unknown scheme '" + spec.name + "'; expected one of: " + known);
}

}  // namespace dcqcn
