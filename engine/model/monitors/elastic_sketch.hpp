// Elastic Sketch (Yang et al., SIGCOMM 2018), software version: a heavy part that keeps the large
// flows by key with Ostracism voting, and a light part of plain counters for the rest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "model/base/archive.hpp"
#include "model/base/random_stream.hpp"
#include "model/monitors/flow_run.hpp"

namespace dcqcn {

class ElasticSketch {
 public:
  static constexpr int kEntries = 7;
  static constexpr std::int64_t kBucketBytes = 64;
  static constexpr std::uint32_t kLambda = 8;
  static constexpr std::uint32_t kMaxVote = 0x7fffffffu;

  /// Width of a light counter: bytes need 32 bits, packets do with 8. Both saturate.
  enum class Light : std::uint8_t { kBits8 = 1, kBits32 = 4 };

  ElasticSketch() = default;
  /// Sizes in bytes, rounded down to whole buckets and counters; at least one of each.
  ElasticSketch(std::int64_t heavy_bytes, std::int64_t light_bytes, Light light,
                std::uint64_t hash_seed);

  /// Adds `weight` (1 .. 2^31 - 1) to flow `key` (not 0).
  void insert(std::uint32_t key, std::uint32_t weight) {
    const std::size_t at = bucket_of(key);
    Bucket& bucket = heavy_[at];
    const unsigned hit = matches(bucket, key);
    if (hit != 0) [[likely]] {
      add_vote(bucket.vote[__builtin_ctz(hit)], weight);
    } else {
      insert_new(at, key, weight);
    }
  }

  /// Adds the packets of `runs`, which come in any order, exactly as if they had been inserted one
  /// by one in the order of arrival. Returns false, and has done nothing, where that order might
  /// matter: when a bucket may run out of entries. `missed` is overwritten.
  bool insert_runs(std::vector<FlowRun>& runs, std::vector<FlowRun>& missed);

  /// Estimated total of one flow.
  std::uint64_t query(std::uint32_t key) const;

  /// Calls f(key, estimate) for every flow of the heavy part, by touched bucket and then entry.
  template <typename F>
  void for_each(F&& f) const {
    for (const std::uint32_t at : touched_) {
      const Bucket& bucket = heavy_[at];
      for (int i = 0; i < kEntries && bucket.key[i] != 0; ++i) f(bucket.key[i], total(bucket, i));
    }
  }

  /// Empties the sketch; costs as much as was touched since the last time.
  void reset();

  std::size_t buckets() const { return heavy_.size(); }
  std::size_t light_counters() const { return light8_.size() + light32_.size(); }
  std::size_t touched_buckets() const { return touched_.size(); }
  std::int64_t memory_bytes() const;

  /// One bucket and one light counter as they stand, for tests and accuracy studies.
  struct Entry {
    std::uint32_t key = 0;
    std::uint32_t vote = 0;
    bool flag = false;  // part of the total may be in the light part
  };
  Entry entry(std::size_t bucket, int i) const {
    const std::uint32_t vote = heavy_[bucket].vote[i];
    return {heavy_[bucket].key[i], vote & kMaxVote, (vote & kFlag) != 0};
  }
  std::uint32_t guard(std::size_t bucket) const { return heavy_[bucket].vote[kEntries]; }
  std::uint32_t light_counter(std::size_t i) const {
    return light8_.empty() ? light32_[i] : light8_[i];
  }
  std::uint32_t light_estimate(std::uint32_t key) const { return light_counter(light_of(key)); }

  void visit(Archive& a) {
    a.all<ElasticSketch>(heavy_, heavy_seed_, light8_, light32_, touched_, light_lines_,
                         light_dirty_, light_seed_);
  }

 private:
  static constexpr std::uint32_t kFlag = 0x80000000u;

  // one cache line; entries fill from 0 on, key 0 is empty, vote[7] is the votes against
  struct alignas(64) Bucket {
    std::uint32_t key[8] = {};
    std::uint32_t vote[8] = {};
  };
  static_assert(sizeof(Bucket) == kBucketBytes);

  std::size_t bucket_of(std::uint32_t key) const {
    const std::uint64_t hash = mix32(key ^ heavy_seed_);
    return static_cast<std::size_t>((hash * heavy_.size()) >> 32);
  }
  std::size_t light_of(std::uint32_t key) const {
    const std::uint64_t hash = mix64(key ^ light_seed_) >> 32;
    return static_cast<std::size_t>((hash * light_counters()) >> 32);
  }

  // bit i: lane i holds `key`; lane 7 is always 0, which no flow is
  static unsigned matches(const Bucket& bucket, std::uint32_t key) {
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi32(static_cast<int>(key));
    const auto* lanes = reinterpret_cast<const __m128i*>(bucket.key);
    const __m128i low = _mm_cmpeq_epi32(_mm_load_si128(lanes), wanted);
    const __m128i high = _mm_cmpeq_epi32(_mm_load_si128(lanes + 1), wanted);
    const __m128i packed = _mm_packs_epi32(low, high);
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(packed, _mm_setzero_si128())));
#else
    unsigned mask = 0;
    for (int i = 0; i < 8; ++i) mask |= static_cast<unsigned>(bucket.key[i] == key) << i;
    return mask;
#endif
  }

  static void add_vote(std::uint32_t& vote, std::uint32_t weight) {
    const std::uint32_t sum = vote + weight;
    // a carry into the flag is the only way to change it
    vote = ((sum ^ vote) & kFlag) == 0 ? sum : (vote | kMaxVote);
  }

  std::uint64_t total(const Bucket& bucket, int i) const {
    const std::uint64_t vote = bucket.vote[i] & kMaxVote;
    return (bucket.vote[i] & kFlag) == 0 ? vote : vote + light_estimate(bucket.key[i]);
  }

  void insert_new(std::size_t at, std::uint32_t key, std::uint32_t weight);
  void evict(const Bucket& bucket, int victim);
  void light_add(std::uint32_t key, std::uint32_t weight);
  void light_raise(std::uint32_t key, std::uint32_t value);
  std::uint32_t light_max() const { return light8_.empty() ? ~0u : 255u; }
  void light_store(std::size_t i, std::uint32_t value);

  std::vector<Bucket> heavy_;
  std::uint32_t heavy_seed_ = 0;      // beside heavy_: every packet needs both
  std::vector<std::uint8_t> light8_;  // one of the two is empty
  std::vector<std::uint32_t> light32_;
  std::vector<std::uint32_t> touched_;      // heavy buckets in use, in order of first use
  std::vector<std::uint32_t> light_lines_;  // cache lines of the light part in use
  std::vector<std::uint8_t> light_dirty_;   // 1 for each of them
  std::uint64_t light_seed_ = 0;
};

}  // namespace dcqcn
