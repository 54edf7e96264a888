#include "model/schemes/nic_schemes.hpp"

#include <algorithm>
#include <stdexcept>

namespace dcqcn {

NicSchemes::NicSchemes(const Scenario& scenario, const std::vector<QpReceiver>& receivers)
    : index_(static_cast<std::size_t>(scenario.hosts)), of_host_(index_.size(), nullptr) {
  std::vector<bool> rest(index_.size(), true);
  SchemeSpec everywhere;
  bool said = false;
  for (const SchemeSpec& spec : scenario.schemes) {
    if (spec.hosts.empty()) {
      if (said) spec.fail("a second scheme for all hosts; give it hosts=...");
      everywhere = spec;
      said = true;
      continue;
    }
    std::vector<bool> hosts(index_.size());
    for (const int h : spec.hosts) {
      const std::size_t at = static_cast<std::size_t>(h);
      if (!rest[at]) spec.fail("host " + std::to_string(h) + " has a scheme already");
      hosts[at] = true;
      rest[at] = false;
    }
    bind(spec, scenario, hosts, receivers);
  }
  if (said || std::find(rest.begin(), rest.end(), true) != rest.end()) {
    bind(everywhere, scenario, rest, receivers);
  }
}

void NicSchemes::bind(const SchemeSpec& spec, const Scenario& scenario,
                      const std::vector<bool>& hosts, const std::vector<QpReceiver>& receivers) {
  schemes_.push_back(make_scheme(spec, scenario.transport, hosts, receivers));
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    if (!hosts[h]) continue;
    index_[h] = schemes_.size() - 1;
    of_host_[h] = schemes_.back().get();
  }
}

bool NicSchemes::any(bool Scheme::* wish) const {
  return std::any_of(schemes_.begin(), schemes_.end(), [&](const auto& s) { return *s.*wish; });
}

std::size_t NicSchemes::columns() const {
  std::size_t most = 0;
  for (const auto& s : schemes_) most = std::max(most, s->names().knobs.size());
  return most;
}

void NicSchemes::check_shape(std::size_t rows, std::size_t cells) const {
  if (rows != of_host_.size() || cells != columns()) {
    throw std::invalid_argument("apply: expected " + std::to_string(of_host_.size()) +
                                " NIC rows of " + std::to_string(columns()) + " knobs, got " +
                                std::to_string(rows) + " of " + std::to_string(cells));
  }
}

NicSettings NicSchemes::read_settings(const SiRows& rows) const {
  check_shape(rows.rows, rows.columns);
  NicSettings read;
  for (const auto& s : schemes_) read.push_back(s->read_settings(rows));
  return read;
}

void NicSchemes::put_in_force(const NicSettings& settings) {
  for (std::size_t i = 0; i < schemes_.size(); ++i) schemes_[i]->put_in_force(*settings[i]);
}

void NicSchemes::take_counters(std::vector<SchemeReport>& out) {
  out.clear();
  for (const auto& s : schemes_) {
    out.push_back({&s->names(), s->notes.counters});
    std::fill(s->notes.counters.begin(), s->notes.counters.end(), 0);
  }
}

bool NicSchemes::tracing() const {
  return std::any_of(schemes_.begin(), schemes_.end(),
                     [](const auto& scheme) { return scheme->notes.tracing; });
}

void NicSchemes::trace(bool wanted) {
  for (const auto& s : schemes_) s->notes.tracing = wanted;
}

std::vector<std::pair<const SchemeNames*, std::vector<SchemeEvent>>> NicSchemes::take_trace() {
  std::vector<std::pair<const SchemeNames*, std::vector<SchemeEvent>>> out;
  for (const auto& s : schemes_) {
    out.emplace_back(&s->names(), std::move(s->notes.events));
    s->notes.events.clear();
    // what one host does is in one order in every engine, what different hosts do is not
    std::stable_sort(out.back().second.begin(), out.back().second.end(),
                     [](const SchemeEvent& a, const SchemeEvent& b) {
                       return a.when != b.when ? a.when < b.when : a.src < b.src;
                     });
  }
  return out;
}

}  // namespace dcqcn
