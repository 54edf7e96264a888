// CHAMELEON: Elastic Sketch, local statistics of a short period; their mean over the periods with
// data is uploaded every long one.
#pragma once

#include "model/monitors/kind.hpp"

namespace dcqcn::monitors {

struct Uploads {
  LocalFsd local;  // being summed
  LocalFsd sent;   // what the controller has
};

class Chameleon : public Counting<SketchCounter, Uploads> {
 public:
  static constexpr const char* kName = "chameleon";
  struct Options : CommonOptions, SketchOptions {
    Time local_every = kPicosPerSecond / 100;
    Time upload_every = kPicosPerSecond / 10;
    bool operator==(const Options&) const = default;
    void check(const Line& line) { SketchOptions::check(line); }
  };
  static Fields<Options> fields() {
    return join(sketch_fields<Options>(),
                {{"local_ps",
                  [](Options& o, const Value& v) { o.local_every = v.whole(1, kLongestPeriod); }},
                 {"upload_ps", [](Options& o, const Value& v) {
                    o.upload_every = v.whole(1, kLongestPeriod);
                  }}});
  }

  Chameleon(const Options& options, const Place& place)
      : Counting(options, place, {.local = local_of(0, 0), .sent = {}}),
        options_(options),
        next_local_(options.local_every),
        next_upload_(options.upload_every) {}

  void end_interval(Time now, FsdReport& out, Verdicts& verdicts) {
    const bool local_due = now >= next_local_, upload_due = now >= next_upload_;
    if (local_due) next_local_ = next_after(now, options_.local_every);
    if (upload_due) {
      next_upload_ = next_after(now, options_.upload_every);
      sent_once_ = true;
    }
    tors_.for_each([&](int tor, Tor& t) {
      t.more.local.node = static_cast<std::uint32_t>(tor);
      if (local_due) add_period(tor, t, verdicts);
      if (upload_due) {
        t.more.sent = t.more.local;
        t.more.local = local_of(tor, 0);
        out.monitor_bytes += sizeof(LocalFsd);
      }
      out.add(t.more.sent);
    });
    out.known = sent_once_;
  }

  void report_cost(FsdReport& out) const {
    tors_.for_each([&](int, const Tor& t) { out.data_plane_bytes += t.counter.memory_bytes(); });
  }

  void visit(Archive& a) {
    Counting::visit(a);
    a.all<Chameleon>(Built<Counting>{}, built(options_), next_local_, next_upload_, sent_once_);
  }

 private:
  void add_period(int tor, Tor& t, Verdicts& verdicts) {
    verdicts.begin(tor);
    const bool data = !t.counter.empty();
    t.counter.read_and_reset([&](std::uint32_t key, std::uint64_t bytes) {
      count(t.more.local, verdicts, key, judge_alone(bytes, options_.tau));
    });
    t.more.local.periods += data;
  }

  Options options_;
  Time next_local_;
  Time next_upload_;
  bool sent_once_ = false;
};

}  // namespace dcqcn::monitors
