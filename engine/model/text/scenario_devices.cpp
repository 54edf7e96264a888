// Lines about what all hosts and switches do in a compiled scenario: wire, pfc, scheme, transport,
// cnp, monitor.
#include "model/text/scenario_lines.hpp"

namespace dcqcn {

namespace {

constexpr Bytes kLargestFrame = 4096;

const Field<Wire> kWire[] = {
    {"payload", [](Wire& w, const Value& v) { w.payload = v.whole(1, kLargestFrame); }},
    {"data", [](Wire& w, const Value& v) { w.data_overhead = v.whole(0, kLargestFrame); }},
    {"ack", [](Wire& w, const Value& v) { w.ack = v.whole(1, kLargestFrame); }},
    {"cnp", [](Wire& w, const Value& v) { w.cnp = v.whole(1, kLargestFrame); }},
    {"pfc", [](Wire& w, const Value& v) { w.pfc = v.whole(1, 65535); }},
    {"cnp_in_ack", [](Wire& w, const Value& v) { w.cnp_in_ack = v.flag(); }},
};

const Field<PfcConfig> kPfc[] = {
    {"enabled", [](PfcConfig& p, const Value& v) { p.enabled = v.flag(); }},
    {"lossless",
     [](PfcConfig& p, const Value& v) {
       p.lossless = 0;
       for (const int priority : v.list(0, 7)) {
         p.lossless = static_cast<std::uint8_t>(p.lossless | 1u << priority);
       }
     }},
    {"alpha", [](PfcConfig& p, const Value& v) { p.alpha = v.real(0, 1e6); }},
    {"reserve", [](PfcConfig& p, const Value& v) { p.reserve = v.whole(0, kMostBytes); }},
    {"resume_offset",
     [](PfcConfig& p, const Value& v) { p.resume_offset = v.whole(0, kMostBytes); }},
    {"ack_class",
     [](PfcConfig& p, const Value& v) {
       const auto both = v.choice<int>({{"control", 0}, {"data", 3}, {"data-cnp-first", 1}});
       p.acks_as_data = both & 1 ? 0xFF : 0;
       p.cnps_as_data = both & 2 ? 0xFF : 0;
     }},
};

const Field<ClassSpec> kClass[] = {
    {"weight", [](ClassSpec& c, const Value& v) { c.weight = static_cast<int>(v.whole(1, 100)); }},
    {"transport", [](ClassSpec& c,
                     const Value& v) { c.tcp = v.choice<bool>({{"roce", false}, {"tcp", true}}); }},
    {"dscp", [](ClassSpec& c, const Value& v) { c.dscp = static_cast<unsigned>(v.whole(0, 63)); }},
    {"alpha", [](ClassSpec& c, const Value& v) { c.alpha = v.real(0, 1e6); }, Absent::kAlways},
    {"ecn",
     [](ClassSpec& c, const Value& v) {
       const std::vector<Value> parts = v.parts(':');
       if (parts.size() != 3) v.refuse("kmin:kmax:pmax, in bytes and as a share");
       const double si[] = {static_cast<double>(parts[0].whole(0, kMostBytes)),
                            static_cast<double>(parts[1].whole(0, kMostBytes)),
                            parts[2].real(0, 1)};
       if (si[1] < si[0]) v.refuse("kmin at most kmax");
       c.curve = EcnSetting::from_si(si);
       c.own_curve = true;
     },
     Absent::kAlways},
};

const Field<Transport> kTransport[] = {
    {"qp",
     [](Transport& t, const Value& v) {
       t.qp_per_pair = v.choice<bool>({{"flow", false}, {"pair", true}});
     }},
    {"ack_every",
     [](Transport& t, const Value& v) {
       t.ack_every = static_cast<std::uint32_t>(v.whole(1, 1'000'000));
     }},
    {"window", [](Transport& t, const Value& v) { t.window = v.whole(0, kMostBytes); }},
    {"window_scaling", [](Transport& t, const Value& v) { t.window_scales = v.flag(); }},
    {"rto_ps", [](Transport& t, const Value& v) { t.rto = v.whole(1, kLongest / 4); }},
    {"dispatch_delay_ps",
     [](Transport& t, const Value& v) { t.dispatch_delay = v.whole(0, kLongest / 4); }},
    // came later: a complete text without probes does not name it
    {"rtt_probe_ps", [](Transport& t, const Value& v) { t.rtt_probe = v.whole(0, kLongest / 4); },
     Absent::kAlways},
    {"message_ps", [](Transport& t, const Value& v) { t.message_cost = v.whole(0, kLongest / 4); },
     Absent::kAlways},
    {"loss",
     [](Transport& t, const Value& v) {
       t.loss_cuts = v.choice<bool>({{"ignored", false}, {"cut", true}});
     },
     Absent::kAlways},
};

const Field<Transport> kCnp[] = {
    {"scope",
     [](Transport& t, const Value& v) {
       t.cnp_scope_port = v.choice<bool>({{"qp", false}, {"port", true}});
     }},
    {"port_gap_ps",
     [](Transport& t, const Value& v) { t.cnp_port_gap = v.whole(0, kLongest / 4); }},
    {"delay_ps", [](Transport& t, const Value& v) { t.cnp_delay = v.whole(0, kLongest / 4); }},
};

template <class Spec>
void read_item(const Line& line, std::span<const Field<Spec>> table, Spec& spec) {
  line.expect_values(0, "keys only");
  read_keys<Spec>(line, table, spec);
}

}  // namespace

void read_wire(const Line& line, Scenario& scenario) {
  read_item<Wire>(line, kWire, scenario.wire);
}

void read_pfc(const Line& line, Scenario& scenario) {
  scenario.pfc.lossless = 0;  // of a line that names none
  read_item<PfcConfig>(line, kPfc, scenario.pfc);
}

// packets of TCP are none that marks could slow down: they get none
void read_class(const Line& line, Scenario& scenario) {
  line.expect_values(1, "its priority, then keys");
  const auto priority =
      static_cast<unsigned>(Value(line, "priority", line.values()[0]).whole(0, 7));
  if (scenario.classes.declared >> priority & 1) line.fail("a second one of this priority");
  ClassSpec& spec = scenario.classes.of[priority];
  read_keys<ClassSpec>(line, kClass, spec);
  const auto bit = static_cast<std::uint8_t>(1u << priority);
  scenario.classes.declared |= bit;
  scenario.pfc.shares[priority] = spec.alpha;
  if (!spec.tcp) return;
  if (spec.own_curve) line.fail("has ecn and transport = tcp, which is not marked; expected one");
  scenario.classes.tcp |= bit;
  spec.own_curve = true;
  spec.curve.kmin = spec.curve.kmax = kMostBytes;
}

// a scheme knows its own options: what is neither `name` nor `hosts` goes to it
void read_scheme(const Line& line, Scenario& scenario) {
  line.expect_values(0, "keys only");
  SchemeSpec scheme;
  scheme.line = line.number();
  scheme.complete = line.complete();
  std::vector<std::pair<std::string_view, Absent>> keys = {{"name", Absent::kNever}};
  for (const auto& [key, text] : line.pairs()) {
    if (key == "name") {
      scheme.name = text;
      continue;
    }
    keys.emplace_back(key, Absent::kAlways);
    if (key == "hosts") {
      scheme.hosts = Value(line, key, text).list(0, scenario.hosts - 1);
    } else {
      scheme.options.emplace_back(key, text);
    }
  }
  check_keys(line, keys);
  scenario.schemes.push_back(std::move(scheme));
}

void read_transport(const Line& line, Scenario& scenario) {
  read_item<Transport>(line, kTransport, scenario.transport);
}

void read_cnp(const Line& line, Scenario& scenario) {
  read_item<Transport>(line, kCnp, scenario.transport);
}

void read_monitor(const Line& line, Scenario& scenario) {
  scenario.monitor = MonitorConfig::read(line);
}

}  // namespace dcqcn
