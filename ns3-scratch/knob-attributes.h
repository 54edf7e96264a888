// SPDX-License-Identifier: GPL-2.0-only
// The rows of a knob table as attributes of an ns-3 object, in SI units.
#ifndef DCQCN_KNOB_ATTRIBUTES_H
#define DCQCN_KNOB_ATTRIBUTES_H

#include <array>
#include <cctype>
#include <sstream>
#include <string>

#include "model/settings/knobs.hpp"
#include "ns3/attribute.h"
#include "ns3/double.h"
#include "ns3/type-id.h"

namespace ns3 {

/// The name of a knob's attribute: RPG_AI_RATE and its like become RpgAiRate.
inline std::string KnobAttribute(const ::dcqcn::KnobRow& row) {
  std::string name;
  bool first = true;
  for (const char* c = row.mlxconfig ? row.mlxconfig : row.name; *c; ++c) {
    if (*c != '_') {
      const auto letter = static_cast<unsigned char>(*c);
      name += static_cast<char>(first ? std::toupper(letter) : std::tolower(letter));
    }
    first = *c == '_';
  }
  return name;
}

/// What the row says, and its unit in SI.
inline std::string KnobHelp(const ::dcqcn::KnobRow& row) {
  std::ostringstream text;
  text << row.help << " [SI: 1 " << row.unit.name << " = " << row.unit.si_per_unit;
  if (std::string(row.unit.si_unit) != "1") text << ' ' << row.unit.si_unit;
  text << ']';
  return text.str();
}

/// One place of an array of knob values.
template <class Object, std::size_t N>
class KnobAccessor : public AttributeAccessor {
 public:
  using Values = std::array<double, N> Object::*;
  KnobAccessor(Values values, std::size_t at) : m_values(values), m_at(at) {}

  bool Set(ObjectBase* object, const AttributeValue& value) const override {
    auto* owner = dynamic_cast<Object*>(object);
    const auto* number = dynamic_cast<const DoubleValue*>(&value);
    if (!owner || !number) return false;
    (owner->*m_values)[m_at] = number->Get();
    return true;
  }
  bool Get(const ObjectBase* object, AttributeValue& value) const override {
    const auto* owner = dynamic_cast<const Object*>(object);
    auto* number = dynamic_cast<DoubleValue*>(&value);
    if (!owner || !number) return false;
    number->Set((owner->*m_values)[m_at]);
    return true;
  }
  bool HasGetter() const override { return true; }
  bool HasSetter() const override { return true; }

 private:
  Values m_values;
  std::size_t m_at;
};

/// Makes an attribute of every row; `values` has a place for each.
template <class Object, class Setting, std::size_t N>
void AddKnobs(TypeId& id, const std::array<::dcqcn::Knob<Setting>, N>& knobs,
              std::array<double, N> Object::* values) {
  for (std::size_t i = 0; i < N; ++i) {
    const ::dcqcn::KnobRow& row = knobs[i].row;
    id = id.AddAttribute(KnobAttribute(row), KnobHelp(row), DoubleValue(row.initial_si()),
                         Create<KnobAccessor<Object, N>>(values, i), MakeDoubleChecker<double>(0));
  }
}

/// The same for knobs that a scenario may leave out: 0 means "as the scenario says".
template <class Object, class Setting, std::size_t N>
void AddOptionalKnobs(TypeId& id, const std::array<::dcqcn::Knob<Setting>, N>& knobs,
                      std::array<double, N> Object::* values) {
  for (std::size_t i = 0; i < N; ++i) {
    const ::dcqcn::KnobRow& row = knobs[i].row;
    id = id.AddAttribute(KnobAttribute(row), KnobHelp(row) + "; 0: as the scenario says",
                         DoubleValue(0), Create<KnobAccessor<Object, N>>(values, i),
                         MakeDoubleChecker<double>(0));
  }
}

}  // namespace ns3
#endif
