#include "model/monitors/elastic_sketch.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "model/base/prefetch.hpp"

namespace dcqcn {

namespace {

constexpr std::uint32_t kNowhere = ~0u;

}  // namespace

ElasticSketch::ElasticSketch(std::int64_t heavy_bytes, std::int64_t light_bytes, Light light,
                             std::uint64_t hash_seed)
    : heavy_seed_(static_cast<std::uint32_t>(mix64(hash_seed))), light_seed_(mix64(~hash_seed)) {
  const auto width = static_cast<std::int64_t>(light);
  if (heavy_bytes < kBucketBytes || light_bytes < width) {
    throw std::invalid_argument(
        "an Elastic Sketch needs at least one bucket of " + std::to_string(kBucketBytes) +
        " bytes (heavy_bytes = " + std::to_string(heavy_bytes) + ") and one light counter of " +
        std::to_string(width) + " (light_bytes = " + std::to_string(light_bytes) + ")");
  }
  if (heavy_bytes > std::int64_t{1} << 32 || light_bytes > std::int64_t{1} << 32) {
    throw std::invalid_argument("an Elastic Sketch part is at most 4 GiB");
  }
  heavy_.resize(static_cast<std::size_t>(heavy_bytes / kBucketBytes));
  const auto counters = static_cast<std::size_t>(light_bytes / width);
  (light == Light::kBits8) ? light8_.resize(counters) : light32_.resize(counters);
  // sized once, so that no packet ever allocates
  touched_.reserve(heavy_.size());
  light_dirty_.resize(counters * static_cast<std::size_t>(width) / kCacheLine + 1);
  light_lines_.reserve(light_dirty_.size());
}

std::int64_t ElasticSketch::memory_bytes() const {
  return static_cast<std::int64_t>(heavy_.size() * sizeof(Bucket) + light8_.size() +
                                   light32_.size() * sizeof(std::uint32_t));
}

// Votes for flows that have an entry add up in any order. New flows get their entries in the order
// of arrival, each of them in a bucket that has room for all of them, so that nobody votes against
// anybody. The first loop only looks, the others cannot fail.
bool ElasticSketch::insert_runs(std::vector<FlowRun>& runs, std::vector<FlowRun>& missed) {
  missed.clear();
  std::size_t room = kEntries;
  for (FlowRun& run : runs) {
    const std::size_t at = bucket_of(run.key);
    const Bucket& bucket = heavy_[at];
    const unsigned hit = matches(bucket, run.key);
    if (hit != 0) [[likely]] {
      run.place = static_cast<std::uint32_t>(at) * 8u + static_cast<unsigned>(__builtin_ctz(hit));
      continue;
    }
    run.place = kNowhere;
    missed.push_back(run);
    const unsigned empty = matches(bucket, 0) & ((1u << kEntries) - 1);
    room = std::min(room, static_cast<std::size_t>(__builtin_popcount(empty)));
  }
  if (missed.size() > room) return false;
  for (const FlowRun& run : runs) {
    if (run.place != kNowhere) add_vote(heavy_[run.place / 8].vote[run.place % 8], run.weight);
  }
  sort_by_arrival(missed);
  for (const FlowRun& run : missed) insert(run.key, run.weight);
  return true;
}

void ElasticSketch::insert_new(std::size_t at, std::uint32_t key, std::uint32_t weight) {
  Bucket& bucket = heavy_[at];
  const unsigned empty = matches(bucket, 0) & ((1u << kEntries) - 1);
  if (empty != 0) {
    const int i = __builtin_ctz(empty);
    if (i == 0) touched_.push_back(static_cast<std::uint32_t>(at));
    bucket.key[i] = key;
    bucket.vote[i] = std::min(weight, kMaxVote);
    return;
  }
  int victim = 0;
  for (int i = 1; i < kEntries; ++i) {
    if ((bucket.vote[i] & kMaxVote) < (bucket.vote[victim] & kMaxVote)) victim = i;
  }
  std::uint32_t& guard = bucket.vote[kEntries];
  const std::uint64_t against = std::uint64_t{guard} + weight;
  const std::uint64_t votes = bucket.vote[victim] & kMaxVote;
  if (against > kLambda * votes) {
    evict(bucket, victim);
    bucket.key[victim] = key;
    bucket.vote[victim] = std::min(weight, kMaxVote) | kFlag;
    guard = 0;
  } else {
    guard = static_cast<std::uint32_t>(std::min<std::uint64_t>(against, ~0u));
    light_add(key, weight);
  }
}

void ElasticSketch::evict(const Bucket& bucket, int victim) {
  const std::uint32_t vote = bucket.vote[victim];
  if ((vote & kFlag) != 0) {
    light_add(bucket.key[victim], vote & kMaxVote);
  } else {
    // never in the light part: what the counter already holds belongs to others
    light_raise(bucket.key[victim], vote);
  }
}

void ElasticSketch::light_add(std::uint32_t key, std::uint32_t weight) {
  const std::size_t i = light_of(key);
  const std::uint64_t sum = std::uint64_t{light_counter(i)} + weight;
  light_store(i, static_cast<std::uint32_t>(std::min<std::uint64_t>(sum, light_max())));
}

void ElasticSketch::light_raise(std::uint32_t key, std::uint32_t value) {
  const std::size_t i = light_of(key);
  const std::uint32_t now = light_counter(i);
  light_store(i, std::max(now, std::min(value, light_max())));
}

void ElasticSketch::light_store(std::size_t i, std::uint32_t value) {
  std::size_t line = i / kCacheLine;
  if (light8_.empty()) {
    line = i * sizeof(std::uint32_t) / kCacheLine;
    light32_[i] = value;
  } else {
    light8_[i] = static_cast<std::uint8_t>(value);
  }
  if (light_dirty_[line] == 0) {
    light_dirty_[line] = 1;
    light_lines_.push_back(static_cast<std::uint32_t>(line));
  }
}

std::uint64_t ElasticSketch::query(std::uint32_t key) const {
  const Bucket& bucket = heavy_[bucket_of(key)];
  const unsigned hit = matches(bucket, key);
  return hit != 0 ? total(bucket, __builtin_ctz(hit)) : light_estimate(key);
}

void ElasticSketch::reset() {
  for (const std::uint32_t at : touched_) heavy_[at] = Bucket{};
  touched_.clear();
  for (const std::uint32_t line : light_lines_) {
    light_dirty_[line] = 0;
    if (light8_.empty()) {
      const std::size_t per_line = kCacheLine / sizeof(std::uint32_t);
      const std::size_t from = line * per_line;
      const std::size_t to = std::min(from + per_line, light32_.size());
      std::fill(light32_.begin() + static_cast<std::ptrdiff_t>(from),
                light32_.begin() + static_cast<std::ptrdiff_t>(to), 0u);
    } else {
      const std::size_t from = line * kCacheLine;
      const std::size_t to = std::min(from + kCacheLine, light8_.size());
      std::fill(light8_.begin() + static_cast<std::ptrdiff_t>(from),
                light8_.begin() + static_cast<std::ptrdiff_t>(to), std::uint8_t{0});
    }
  }
  light_lines_.clear();
}

}  // namespace dcqcn
