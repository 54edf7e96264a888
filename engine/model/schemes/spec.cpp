#include <algorithm>
#include <stdexcept>

#include "model/schemes/scheme.hpp"

namespace dcqcn {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
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
    fail(key + "=" + value + " of scheme " + name + "; expected one of: " + joined(known));
  }
  return known.front();
}

void SchemeSpec::allow(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : options) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      fail("scheme " + name + " has no option '" + key + "'; it has: " + joined(known));
    }
  }
}

}  // namespace dcqcn
