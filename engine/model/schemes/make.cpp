#include "model/schemes/make.hpp"

#include <type_traits>

#include "model/schemes/list.hpp"
#include "model/settings/knob_tables.hpp"
#include "model/text/near_match.hpp"

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

template <class T>
constexpr std::size_t size_of() {
  return std::is_empty_v<T> ? 0 : sizeof(T);
}

// a memory of its own stands in a sender only where connections are queue pairs
template <class S>
SchemeSizes sizes_of() {
  SchemeSizes s{size_of<typename S::Sender>(),
                size_of<typename S::Receiver>(),
                0,
                size_of<typename S::Nic>(),
                0,
                size_of<typename S::DataFields>(),
                size_of<typename S::AckFields>(),
                size_of<typename S::CnpFields>()};
  if constexpr (requires { typename S::Memory; }) {
    s.connection = sizeof(typename S::Memory);
    s.sender -= s.connection;
  }
  if constexpr (requires { typename S::Listed; }) s.listed = sizeof(typename S::Listed);
  return s;
}

}  // namespace

std::span<const SchemeKnobs> scheme_knobs() {
  static const std::vector<SchemeKnobs> all = [] {
    std::vector<SchemeKnobs> tables;
    for_each_scheme(
        [&]<class S>() { tables.push_back({S::kName, rows_of(S::kKnobs), sizes_of<S>()}); });
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
  std::vector<std::string_view> known;
  for (const SchemeKnobs& scheme : scheme_knobs()) known.emplace_back(scheme.name);
  spec.fail("unknown scheme '" + spec.name + "'" + did_you_mean(spec.name, known));
}

}  // namespace dcqcn
