// Reading the monitor line: the table of the kind that it names decides what is accepted.
#include "model/monitors/monitor_config.hpp"

#include <algorithm>
#include <utility>

namespace dcqcn {

namespace {

using namespace monitors;

template <class K>
Fields<typename K::Options> fields_of() {
  return join(common_fields<typename K::Options>(), K::fields());
}

// calls f.template operator()<I, K>() for every kind
template <typename F, std::size_t... I, class... K>
void for_each_kind(F&& f, std::index_sequence<I...>, List<K...>) {
  (f.template operator()<I, K>(), ...);
}
template <typename F, class... K>
void for_each_kind(F&& f, List<K...> list) {
  for_each_kind(f, std::index_sequence_for<K...>(), list);
}

struct Owners {
  std::string names;  // of the kinds that have the key
  bool is_default = false;
};

// who has a key, and whether the value says what one of them does anyway
Owners owners_of(const std::string& key, const Value& value) {
  Owners found;
  for_each_kind(
      [&]<std::size_t, class K>() {
        for (const auto& field : K::fields()) {
          if (field.key != key) continue;
          typename K::Options options;
          field.read(options, value);
          found.is_default |= options == typename K::Options();
          found.names += (found.names.empty() ? "" : ", ") + std::string(K::kName);
        }
      },
      Kinds());
  return found;
}

// rows that skip the keys of other kinds; they have to say nothing new
template <class K>
Fields<typename K::Options> skipped(const Line& line) {
  const auto own = fields_of<K>();
  Fields<typename K::Options> rows;
  for (const auto& [key, text] : line.pairs()) {
    const auto is_key = [&](const auto& field) { return field.key == key; };
    if (std::any_of(own.begin(), own.end(), is_key)) continue;
    const Owners owners = owners_of(key, Value(line, key, text));
    if (owners.names.empty()) continue;  // unknown, refused as such
    if (!owners.is_default) {
      line.fail(key + " = " + shown(text) + " is an option of " + owners.names + ", not of kind " +
                K::kName + "; leave it out or choose another kind");
    }
    rows.push_back({key.c_str(), [](typename K::Options&, const Value&) {}, Absent::kAlways});
  }
  return rows;
}

template <class K>
typename K::Options options_of(const Line& line) {
  typename K::Options options;
  const auto table = join(fields_of<K>(), skipped<K>(line));
  read_keys<typename K::Options>(line, table, options);
  options.check(line);
  return options;
}

std::string kind_of(const Line& line) {
  for (const auto& [key, text] : line.pairs()) {
    if (key == "kind") return text;
  }
  return Exact::kName;
}

}  // namespace

MonitorConfig MonitorConfig::read(const Line& line) {
  line.expect_values(0, "keys only");
  const std::string kind = kind_of(line);
  MonitorConfig config;
  std::vector<std::string_view> known;
  bool found = false;
  for_each_kind(
      [&]<std::size_t I, class K>() {
        known.push_back(K::kName);
        if (kind != K::kName) return;
        config.options.emplace<I>(options_of<K>(line));
        found = true;
      },
      Kinds());
  if (!found) line.fail("unknown kind " + shown(kind) + did_you_mean(kind, known));
  return config;
}

const CommonOptions& MonitorConfig::common() const {
  return std::visit([](const auto& o) -> const CommonOptions& { return o; }, options);
}

int MonitorConfig::sizes_cdf() const {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.sizes_cdf; }) return o.sizes_cdf;
        return -1;
      },
      options);
}

void MonitorConfig::set_sizes(std::vector<SizePoint> sizes) {
  std::visit(
      [&](auto& o) {
        if constexpr (requires { o.sizes; }) o.sizes = std::move(sizes);
      },
      options);
}

std::vector<MonitorKind> monitor_kinds() {
  std::vector<MonitorKind> kinds;
  for_each_kind(
      [&]<std::size_t, class K>() {
        kinds.push_back({K::kName, {}});
        for (const auto& field : fields_of<K>()) kinds.back().keys.emplace_back(field.key);
      },
      Kinds());
  return kinds;
}

}  // namespace dcqcn
