// Which monitor a scenario has and how it is set up: the monitor line of a compiled scenario.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/monitors/list.hpp"
#include "model/text/compiled_line.hpp"

namespace dcqcn {

struct MonitorConfig {
  /// The options of the kind that has the same index in monitors::Kinds.
  monitors::Kinds::AnyOptions options{std::in_place_index<1>};  // exact

  bool operator==(const MonitorConfig&) const = default;

  const monitors::CommonOptions& common() const;
  /// The number of the cdf that the monitor needs; -1: none.
  int sizes_cdf() const;
  /// Gives it the points of that cdf.
  void set_sizes(std::vector<SizePoint> sizes);

  /// Throws std::invalid_argument with the number of the line, what was given and what was
  /// expected. A key of another kind is taken if it says what is that kind's default.
  static MonitorConfig read(const Line& line);
};

/// A kind of monitor and the keys of its line.
struct MonitorKind {
  std::string name;
  std::vector<std::string> keys;
};
std::vector<MonitorKind> monitor_kinds();

}  // namespace dcqcn
