// SPDX-License-Identifier: GPL-2.0-only
// JSON on one line, field by field; a double has the shortest digits that give it back.
#ifndef DCQCN_JSON_LINE_H
#define DCQCN_JSON_LINE_H

#include <charconv>
#include <iomanip>
#include <ostream>
#include <string>
#include <type_traits>

#include "sim/report_fields.hpp"

namespace ns3 {

/// An object that is open from construction to End().
class JsonLine {
 public:
  explicit JsonLine(std::ostream& out) : m_out(out) { m_out << '{'; }

  template <typename T>
  void Add(const char* name, const T& value) {
    Name(name);
    Write(value);
  }

  /// An array of what `get` returns of each row.
  template <typename Rows, typename Get>
  void Column(const char* name, const Rows& rows, Get get) {
    Name(name);
    const char* before = "[";
    for (const auto& row : rows) {
      m_out << before;
      Write(get(row));
      before = ",";
    }
    m_out << (before[0] == '[' ? "[]" : "]");
  }

  /// An array of rows, each an array of what the fields say of it.
  template <typename Table, typename Fields>
  void Rows(const char* name, const Table& rows, const Fields& fields) {
    Name(name);
    const char* before = "[";
    for (const auto& row : rows) {
      m_out << before;
      before = "[";
      ::dcqcn::for_each_field(fields, [&](const auto& field) {
        m_out << before;
        Write(field.get(row));
        before = ",";
      });
      m_out << ']';
    }
    m_out << (before[0] == '[' ? "[]" : "]");
  }

  /// An object inside; the next fields are its own, up to its End().
  void Open(const char* name) {
    Name(name);
    m_out << '{';
    m_first = true;
  }
  void End() {
    m_out << '}';
    m_first = false;
  }

 private:
  void Name(const char* name) {
    m_out << (m_first ? "\"" : ",\"") << name << "\":";
    m_first = false;
  }

  template <typename T>
  void Write(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      m_out << (value ? "true" : "false");
    } else if constexpr (std::is_arithmetic_v<T>) {
      char digits[40];
      m_out.write(digits, std::to_chars(digits, digits + sizeof digits, value).ptr - digits);
    } else {
      m_out << std::quoted(std::string(value));
    }
  }

  std::ostream& m_out;
  bool m_first = true;
};

}  // namespace ns3
#endif
