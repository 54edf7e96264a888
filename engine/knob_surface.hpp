// The knob tables as Python reads them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "model/settings/knob_tables.hpp"

namespace dcqcn::python {

namespace nb = nanobind;

inline nb::object text_or_none(const char* text) {
  return text ? nb::object(nb::str(text)) : nb::none();
}

// the names are the fields of dcqcn_gym's Knob
inline nb::dict knob_row_of(const KnobRow& row) {
  nb::dict d;
  d["name"] = row.name;
  d["group"] = row.group;
  d["unit"] = row.unit.name;
  d["si_per_unit"] = row.unit.si_per_unit;
  d["si_unit"] = row.unit.si_unit;
  d["default"] = row.initial;
  d["legal"] = nb::make_tuple(row.legal.low, row.legal.high);
  d["tuned"] = nb::make_tuple(row.tuned.low, row.tuned.high);
  d["step"] = row.step;
  d["direction"] = row.direction;
  d["help"] = row.help;
  d["mlxconfig"] = text_or_none(row.mlxconfig);
  d["debugfs"] = text_or_none(row.debugfs);
  d["sonic"] = text_or_none(row.sonic);
  d["integer"] = row.integer;
  d["log"] = row.log;
  d["tuned_by_default"] = row.tuned_by_default;
  d["observed"] = row.observed;
  d["scaling"] = row.scaling;
  d["off"] = row.off ? nb::object(nb::float_(*row.off)) : nb::none();
  d["off_acts_like"] = row.off_acts_like;
  d["source"] = row.source;
  return d;
}

inline nb::list knob_rows_of(std::span<const KnobRow> rows) {
  nb::list list;
  for (const KnobRow& row : rows) list.append(knob_row_of(row));
  return list;
}

inline nb::dict knob_tables() {
  nb::dict nics;
  for (const SchemeKnobs& scheme : scheme_knobs()) nics[scheme.name] = knob_rows_of(scheme.nic);
  nb::dict d;
  d["schemes"] = nics;
  d["switch"] = knob_rows_of(ecn_knobs());
  d["optional"] = knob_rows_of(pfc_knobs());
  return d;
}

inline nb::dict scheme_sizes(const std::string& scheme) {
  const SchemeSizes& s = scheme_knobs(scheme).sizes;
  nb::dict d;
  d["sender"] = s.sender;
  d["receiver"] = s.receiver;
  d["connection"] = s.connection;
  d["nic"] = s.nic;
  d["listed"] = s.listed;
  d["data_fields"] = s.data_fields;
  d["ack_fields"] = s.ack_fields;
  d["cnp_fields"] = s.cnp_fields;
  return d;
}

inline void bind_knobs(nb::module_& m) {
  m.def("knob_tables", &knob_tables,
        "Rows by scheme of its NIC (the first scheme is the default), those of a switch port, and "
        "those that a switch port has besides if a scenario turns them.");
  m.def("scheme_sizes", &scheme_sizes, nb::arg("scheme"),
        "Bytes of a scheme's states and fields, as the engine holds them.");
}

}  // namespace dcqcn::python
