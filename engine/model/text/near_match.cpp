#include "model/text/near_match.hpp"

#include <algorithm>
#include <utility>

namespace dcqcn {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // rows of the table for the last two characters of a, and the one being filled
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& known) {
  std::vector<std::pair<std::size_t, std::string_view>> near;
  std::string all;
  for (const std::string_view k : known) {
    // a name of thousands of characters is like no other
    const std::size_t longest = std::max(name.size(), k.size());
    if (longest <= 64) {
      const std::size_t distance = edit_distance(name, k);
      if (distance <= std::max<std::size_t>(1, (longest + 1) / 3)) near.emplace_back(distance, k);
    }
    all.append(all.empty() ? "" : ", ").append(k);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, near.size()); ++i) {
    out.append(i == 0 ? "; did you mean '" : " or '").append(near[i].second).append("'");
  }
  if (!out.empty()) out += "?";
  return out + " (known: " + all + ")";
}

}  // namespace dcqcn
