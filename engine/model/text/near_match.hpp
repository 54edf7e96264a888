// The end of a message about a name that is not known: near matches and what is known.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dcqcn {

/// Number of characters to insert, delete, replace or swap with their neighbour to get from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// "; did you mean 'a' or 'b'? (known: a, b, c)": the closest names come first, those that differ
/// in more than about a third of their characters are not proposed.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace dcqcn
