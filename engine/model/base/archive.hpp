// What a simulation is at an instant, as bytes: to copy it, or to go on with it in another process.
// A class with state has `void visit(Archive& a)`, which names every member in the order of their
// declaration, for saving and for loading alike:
//
//   void visit(Archive& a) { a.all<Thing>(built(config_), queue_, count_); }
//
// built(): made by the constructor, the same in the copy. A member that is not named changes the
// size of what was named, which does not compile. Values without pointers need nothing.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <queue>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#include "model/base/random_stream.hpp"
#include "model/base/ring.hpp"

namespace dcqcn {

// members that stay as they were constructed
template <class... T>
struct Built {};
template <class... T>
constexpr Built<T...> built(const T&...) {
  return {};
}
// a reference, or what stands before the first member (a table of virtual functions)
using BuiltPointer = Built<void*>;

class Archive {
 public:
  // an empty one saves, one of bytes loads them
  Archive() = default;
  explicit Archive(const std::string& bytes)
      : loading_(true), from_(bytes.data()), left_(bytes.size()) {}

  bool loading() const { return loading_; }
  std::string take() { return std::move(bytes_); }
  // after everything: throws std::invalid_argument if the bytes are of other classes, or more
  void end() {
    std::uint64_t layout = layout_;
    item(layout);
    if (layout != layout_ || left_ != 0) refuse();
  }

  // all members of a Thing, in order
  template <class Thing, class... T>
  void all(T&&... members) {
    static_assert(size_of<Thing, T...>() == sizeof(Thing),
                  "a member is missing in visit(), or stands in another place");
    layout_ = mix64(layout_ ^ sizeof(Thing));
    (item(members), ...);
  }
  template <class... T>
  void operator()(T&... values) {
    (item(values), ...);
  }
  template <class T>
  void item(T& value) {
    if constexpr (requires { value.visit(*this); }) {
      value.visit(*this);
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>,
                    "a state with pointers of its own needs visit()");
      raw(&value, sizeof value);
    }
  }
  template <class... T>
  void item(const Built<T...>&) {}
  template <class T, std::size_t n>
  void item(T (&values)[n]) {
    for (T& value : values) item(value);
  }
  template <class T>
  void item(std::vector<T>& values) {
    resize(values);
    if constexpr (std::is_trivially_copyable_v<T> && !requires(T& t) { t.visit(*this); }) {
      static_assert(!std::is_pointer_v<T>);
      raw(values.data(), values.size() * sizeof(T));
    } else {
      for (T& value : values) item(value);
    }
  }
  template <class T>
  void item(std::deque<T>& values) {
    const std::size_t n = count(values.size());
    if (loading_) values.resize(n);
    for (T& value : values) item(value);
  }
  template <class T>
  void item(Ring<T>& ring) {
    std::uint32_t n = ring.size();
    item(n);
    if (loading_) {
      require(n * sizeof(T));
      ring.drop(ring.size());
      for (std::uint32_t i = 0; i < n; ++i) item(ring.push_slot());
    } else {
      for (std::uint32_t i = 0; i < n; ++i) item(ring[i]);
    }
  }
  template <class K, class V>
  void item(std::unordered_map<K, V>& map) {  // nobody may ask for its order
    std::vector<std::pair<K, V>> pairs(map.begin(), map.end());
    resize(pairs);
    for (auto& [key, value] : pairs) (*this)(key, value);
    if (loading_) map = {pairs.begin(), pairs.end()};
  }
  template <class T, class Order>
  void item(std::priority_queue<T, std::vector<T>, Order>& queue) {
    struct Open : std::priority_queue<T, std::vector<T>, Order> {
      static std::vector<T>& of(std::priority_queue<T, std::vector<T>, Order>& q) {
        return q.*&Open::c;
      }
    };
    item(Open::of(queue));
  }
  template <class... T>
  void item(std::variant<T...>& either) {  // the kind that was constructed
    auto index = static_cast<std::uint32_t>(either.index());
    item(index);
    if (index != either.index()) refuse();
    std::visit([this](auto& value) { item(value); }, either);
  }
  template <class T>
  void item(std::unique_ptr<T>& one) {  // there or not, as constructed
    if (one) item(*one);
  }
  // what to do with so many items of a container whose items are made by the caller
  std::size_t count(std::size_t n) {
    auto said = static_cast<std::uint64_t>(n);
    item(said);
    require(said);
    return static_cast<std::size_t>(said);
  }

  [[noreturn]] static void refuse() {
    throw std::invalid_argument(
        "the bytes are no snapshot of this scenario, or of another version; expected what "
        "snapshot() of the same version gave");
  }

 private:
  template <class T>
  struct Sizes {
    static constexpr std::size_t end(std::size_t at) {
      constexpr std::size_t kAlign = alignof(T);
      // NOLINTNEXTLINE(bugprone-sizeof-expression): where T is a pointer, the pointer's is meant
      return (at + kAlign - 1) / kAlign * kAlign + sizeof(T);
    }
  };
  template <class... T>
  struct Sizes<Built<T...>> {
    static constexpr std::size_t end(std::size_t at) {
      ((at = Sizes<T>::end(at)), ...);
      return at;
    }
  };
  template <class Thing, class... T>
  static constexpr std::size_t size_of() {
    std::size_t at = 0;
    ((at = Sizes<std::remove_cvref_t<T>>::end(at)), ...);
    return (at + alignof(Thing) - 1) / alignof(Thing) * alignof(Thing);
  }

  void require(std::size_t bytes) const {
    if (loading_ && bytes > left_) refuse();
  }
  void raw(void* data, std::size_t bytes) {
    if (bytes == 0) return;
    if (loading_) {
      require(bytes);
      std::memcpy(data, from_, bytes);
      from_ += bytes;
      left_ -= bytes;
    } else {
      bytes_.append(static_cast<const char*>(data), bytes);
    }
  }
  template <class T>
  void resize(std::vector<T>& values) {
    const std::size_t n = count(values.size());
    if constexpr (std::is_trivially_copyable_v<T>) require(n * sizeof(T));
    if (loading_) values.resize(n);
  }

  bool loading_ = false;
  std::string bytes_;
  std::uint64_t layout_ = 0;  // of the sizes of all classes so far
  const char* from_ = nullptr;
  std::size_t left_ = 0;
};

}  // namespace dcqcn
