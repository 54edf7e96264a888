#include "model/text/compiled_line.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <stdexcept>

namespace dcqcn {

namespace {

// all of `text` as a number; from_chars takes no sign '+', no blanks and no locale
template <class T>
bool parsed(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

std::string plain(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 60;
  if (text.size() <= kMost) return "'" + std::string(text) + "'";
  return "'" + std::string(text.substr(0, kMost)) + "...'";
}

Line::Line(const std::string& text, int number, bool complete)
    : number_(number), complete_(complete) {
  std::istringstream in(text);
  std::string item;
  while (in >> item && item[0] != '#') {
    if (word_.empty()) {
      word_ = item;
      continue;
    }
    const auto eq = item.find('=');
    if (eq != std::string::npos) {
      pairs_.emplace_back(item.substr(0, eq), item.substr(eq + 1));
    } else if (pairs_.empty()) {
      values_.push_back(item);
    } else {
      fail(shown(item) + " is not key=value, and comes after one that is");
    }
  }
}

void Line::fail(const std::string& why) const {
  const std::string word = word_.size() > 60 ? word_.substr(0, 60) + "..." : word_;
  throw std::invalid_argument("compiled scenario, line " + std::to_string(number_) + " (" + word +
                              "): " + why);
}

void Line::expect_values(std::size_t count, const char* what) const {
  if (values_.size() == count) return;
  std::string given;
  for (const std::string& value : values_) given += (given.empty() ? "" : " ") + value;
  fail("expected " + std::string(what) + ", got " + std::to_string(values_.size()) +
       (values_.size() == 1 ? " value" : " values") + (given.empty() ? "" : ": " + shown(given)));
}

void Line::expect_no_keys() const { check_keys(*this, {}); }

void Value::refuse(const std::string& expected) const {
  line_->fail(std::string(name_) + " = " + shown(text_) + "; expected " + expected);
}

void Value::unknown(const std::vector<std::string_view>& known) const {
  line_->fail("unknown " + std::string(name_) + " " + shown(text_) + did_you_mean(text_, known));
}

std::int64_t Value::whole(std::int64_t low, std::int64_t high) const {
  std::int64_t value = 0;
  const std::string range =
      "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  if (!parsed(text_, value)) {
    line_->fail(std::string(name_) + " = " + shown(text_) + " is not a whole number; expected " +
                range);
  }
  if (value < low || value > high) refuse(range);
  return value;
}

double Value::real(double low, double high) const {
  double value = 0;
  const std::string range = "a number from " + plain(low) + " to " + plain(high);
  if (!parsed(text_, value)) {
    line_->fail(std::string(name_) + " = " + shown(text_) + " is not a number; expected " + range);
  }
  if (!(value >= low && value <= high)) refuse(range);  // nor NaN
  return value;
}

std::vector<Value> Value::parts(char by) const {
  std::vector<Value> out;
  std::size_t from = 0;
  while (true) {
    const std::size_t to = text_.find(by, from);
    out.emplace_back(*line_, name_, text_.substr(from, to - from));
    if (to == std::string_view::npos) return out;
    from = to + 1;
  }
}

std::vector<int> Value::list(int low, int high) const {
  std::vector<int> out;
  if (text_ == "none") return out;
  for (const Value& part : parts(',')) out.push_back(static_cast<int>(part.whole(low, high)));
  std::vector<int> sorted = out;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    refuse("every number once, " + std::to_string(*twice) + " stands there twice");
  }
  return out;
}

void check_keys(const Line& line, std::span<const std::pair<std::string_view, Absent>> keys) {
  std::vector<std::string_view> names;
  for (const auto& [name, absent] : keys) names.push_back(name);
  std::vector<std::string_view> given;
  for (const auto& [key, text] : line.pairs()) {
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      line.fail("unknown key " + shown(key) + did_you_mean(key, names));
    }
    if (std::find(given.begin(), given.end(), key) != given.end()) {
      line.fail("key '" + key + "' is given twice; expected it once");
    }
    given.push_back(key);
  }
  for (const auto& [name, absent] : keys) {
    const bool needed = absent == Absent::kNever || (absent == Absent::kDefault && line.complete());
    if (needed && std::find(given.begin(), given.end(), name) == given.end()) {
      line.fail("key '" + std::string(name) + "' is missing");
    }
  }
}

}  // namespace dcqcn
