// One line of the compiled scenario and the strict reading of it: every line kind is a table of
// keys, and the tables alone decide what is accepted and what the messages say.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/base/units.hpp"
#include "model/text/near_match.hpp"

namespace dcqcn {

inline constexpr Time kLongest = 9'000'000'000'000'000'000;  // of a time in the text
inline constexpr Bytes kMostBytes = Bytes{1} << 50;

/// At most 60 characters of what somebody wrote, for a message.
std::string shown(std::string_view text);

/// A word, positional values, then key=value pairs; from an item on that begins with '#', a
/// comment.
class Line {
 public:
  Line(const std::string& text, int number, bool complete = false);

  const std::string& word() const { return word_; }
  const std::vector<std::string>& values() const { return values_; }
  const auto& pairs() const { return pairs_; }
  int number() const { return number_; }
  bool empty() const { return word_.empty(); }
  /// Every key has to be written, none is left to its default.
  bool complete() const { return complete_; }

  /// Throws std::invalid_argument with the number and the word of the line.
  [[noreturn]] void fail(const std::string& why) const;
  /// Refuses any other number of positional values; `what` names them.
  void expect_values(std::size_t count, const char* what) const;
  void expect_no_keys() const;

 private:
  int number_;
  bool complete_;
  std::string word_;
  std::vector<std::string> values_;
  std::vector<std::pair<std::string, std::string>> pairs_;
};

/// A value of a line and its name; reading it checks type and range.
class Value {
 public:
  Value(const Line& line, std::string_view name, std::string_view text)
      : line_(&line), name_(name), text_(text) {}

  std::int64_t whole(std::int64_t low, std::int64_t high) const;
  double real(double low, double high) const;
  bool flag() const { return choice<bool>({{"0", false}, {"1", true}}); }
  /// Whole numbers with commas, each once; "none" is the empty list.
  std::vector<int> list(int low, int high) const;
  std::vector<Value> parts(char by) const;
  /// The characters [from, to) under a name of their own.
  Value part(std::string_view name, std::size_t from, std::size_t to) const {
    return {*line_, name, text_.substr(from, to - from)};
  }
  template <class T>
  T choice(std::initializer_list<std::pair<std::string_view, T>> known) const {
    std::vector<std::string_view> names;
    for (const auto& [name, value] : known) {
      if (name == text_) return value;
      names.push_back(name);
    }
    unknown(names);
  }
  std::string_view text() const { return text_; }
  [[noreturn]] void refuse(const std::string& expected) const;

 private:
  [[noreturn]] void unknown(const std::vector<std::string_view>& known) const;

  const Line* line_;
  std::string_view name_;
  std::string_view text_;
};

enum class Absent : std::uint8_t {
  kDefault,  // the default, unless the text says that it is complete
  kNever,    // refused
  kAlways,   // the default, in a complete text too
};

template <class Spec>
struct Field {
  const char* key;
  void (*read)(Spec&, const Value&);
  Absent absent = Absent::kDefault;
};

/// Refuses unknown keys, keys given twice and missing keys. `keys` is the table of the line.
void check_keys(const Line& line, std::span<const std::pair<std::string_view, Absent>> keys);

/// Reads the pairs of a line into `spec`, in the order of the table.
template <class Spec>
void read_keys(const Line& line, std::span<const Field<Spec>> table, Spec& spec) {
  std::vector<std::pair<std::string_view, Absent>> keys;
  for (const Field<Spec>& field : table) keys.emplace_back(field.key, field.absent);
  check_keys(line, keys);
  for (const Field<Spec>& field : table) {
    for (const auto& [key, text] : line.pairs()) {
      if (key == field.key) field.read(spec, Value(line, key, text));
    }
  }
}

}  // namespace dcqcn
