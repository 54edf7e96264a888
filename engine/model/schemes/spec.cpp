#include <algorithm>
#include <stdexcept>

#include "model/schemes/scheme.hpp"
#include "model/text/near_match.hpp"

namespace dcqcn {
namespace {

std::string near(const std::string& word, const std::vector<std::string>& known) {
  return did_you_mean(word, {known.begin(), known.end()});
}

}  // namespace

void SchemeSpec::fail(const std::string& why) const {
  throw std::invalid_argument("compiled scenario, line " + std::to_string(line) +
                              " (scheme): " + why);
}

std::string SchemeSpec::choice(const std::string& key,
                               const std::vector<std::string>& known) const {
  for (const auto& [k, value] : options) {
    if (k != key) continue;
    if (std::find(known.begin(), known.end(), value) != known.end()) return value;
    fail(key + "=" + value + " of scheme " + name + " is unknown" + near(value, known));
  }
  if (complete) fail("option '" + key + "' of scheme " + name + " is missing");
  return known.front();
}

void SchemeSpec::allow(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : options) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail("scheme " + name + " has no option '" + key + "'" + near(key, known));
    }
  }
}

}  // namespace dcqcn
