// Lines about the traffic of a compiled scenario: cdf, workload, flow.
#include <algorithm>

#include "model/text/scenario_lines.hpp"

namespace dcqcn {

namespace {

constexpr unsigned of(Pattern pattern) { return 1u << static_cast<unsigned>(pattern); }
constexpr unsigned kAll = (1u << 11) - 1;
constexpr unsigned kOpen = of(Pattern::kPoisson);
constexpr unsigned kStreams = of(Pattern::kStreams);
constexpr unsigned kStorage = of(Pattern::kStorage);
constexpr unsigned kServer = of(Pattern::kParameterServer);
constexpr unsigned kJob = of(Pattern::kJob);
constexpr unsigned kTimed = kAll & ~kStreams & ~of(Pattern::kFlows);
constexpr unsigned kRounds = kTimed & ~kOpen & ~kStorage;
constexpr int kMostHost = 65535;
constexpr int kMostDepth = 4096;
constexpr Bytes kMostBlock = Bytes{1} << 40;

// of a flow that may have no end
Bytes size_of(const Value& value) {
  return value.text() == "unlimited" ? kUnlimited : value.whole(1, kMostBytes);
}

Transfer pair_of(const Value& value) {
  const std::string_view text = value.text();
  const auto arrow = text.find('>'), colon = text.find(':');
  if (arrow == std::string_view::npos || colon == std::string_view::npos || colon < arrow) {
    value.refuse("src>dst:bytes, with commas between them");
  }
  const Value src = value.part("src", 0, arrow);
  const Value dst = value.part("dst", arrow + 1, colon);
  return {static_cast<int>(src.whole(0, kMostHost)), static_cast<int>(dst.whole(0, kMostHost)),
          value.part("bytes", colon + 1, text.size()).whole(1, kMostBytes), 0};
}

struct WorkloadField {
  unsigned patterns;  // that know the key
  Field<WorkloadSpec> field;
};

const WorkloadField kWorkload[] = {
    {kOpen,
     {"cdf", [](WorkloadSpec& w, const Value& v) { w.cdf = static_cast<int>(v.whole(0, 65535)); },
      Absent::kNever}},
    {kAll & ~of(Pattern::kPairs) & ~of(Pattern::kFlows),
     {"hosts", [](WorkloadSpec& w, const Value& v) { w.hosts = v.list(0, kMostHost); },
      Absent::kNever}},
    {kOpen | kStorage | kStreams,
     {"dsts", [](WorkloadSpec& w, const Value& v) { w.dsts = v.list(0, kMostHost); },
      Absent::kNever}},
    {of(Pattern::kIncast) | kServer,
     {"dst",
      [](WorkloadSpec& w, const Value& v) { w.dsts = {static_cast<int>(v.whole(0, kMostHost))}; },
      Absent::kNever}},
    {of(Pattern::kPairs),
     {"pairs",
      [](WorkloadSpec& w, const Value& v) {
        for (const Value& pair : v.parts(',')) w.transfers.push_back(pair_of(pair));
      },
      Absent::kNever}},
    {(kRounds & ~of(Pattern::kPairs) & ~kJob) | kStorage,
     {"bytes", [](WorkloadSpec& w, const Value& v) { w.bytes = v.whole(1, kMostBytes); },
      Absent::kNever}},
    {kStreams,
     {"bytes", [](WorkloadSpec& w, const Value& v) { w.bytes = size_of(v); }, Absent::kNever}},
    {kStreams,
     {"flows", [](WorkloadSpec& w, const Value& v) { w.flows = v.whole(1, 1'000'000); },
      Absent::kNever}},
    {kStreams,
     {"within_ps", [](WorkloadSpec& w, const Value& v) { w.within = v.whole(0, kLongest / 4); }}},
    {of(Pattern::kRing),
     {"steps",
      [](WorkloadSpec& w, const Value& v) { w.steps = static_cast<int>(v.whole(1, 1 << 30)); },
      Absent::kNever}},
    {kStorage,
     {"depth",
      [](WorkloadSpec& w, const Value& v) { w.depth = static_cast<int>(v.whole(1, kMostDepth)); },
      Absent::kNever}},
    {kStorage,
     {"copies",
      [](WorkloadSpec& w, const Value& v) { w.copies = static_cast<int>(v.whole(0, kMostHost)); },
      Absent::kNever}},
    {kStorage,
     {"read_share", [](WorkloadSpec& w, const Value& v) { w.read_share = v.real(0, 1); },
      Absent::kNever}},
    {kStorage,
     {"block_min", [](WorkloadSpec& w, const Value& v) { w.block_min = v.whole(1, kMostBlock); },
      Absent::kNever}},
    {kStorage,
     {"block_max", [](WorkloadSpec& w, const Value& v) { w.block_max = v.whole(1, kMostBlock); },
      Absent::kNever}},
    {kJob,
     {"qps", [](WorkloadSpec& w, const Value& v) { w.qps = static_cast<int>(v.whole(1, 1024)); }}},
    {kJob, {"split", [](WorkloadSpec& w, const Value& v) { w.split = v.flag(); }}},
    {kJob,
     {"admission", [](WorkloadSpec& w,
                      const Value& v) { w.admission = static_cast<int>(v.whole(0, 1 << 30)); }}},
    {kRounds & ~kServer & ~kJob,
     {"messages",
      [](WorkloadSpec& w, const Value& v) { w.messages = static_cast<int>(v.whole(1, 1 << 30)); }}},
    {(kOpen | kRounds) & ~of(Pattern::kRing) & ~kJob,
     {"connections",
      [](WorkloadSpec& w, const Value& v) { w.connections = static_cast<int>(v.whole(1, 65536)); },
      Absent::kAlways}},
    {kOpen,
     {"mean_gap_ps", [](WorkloadSpec& w, const Value& v) { w.mean_gap = v.real(1e-6, 9e18); },
      Absent::kNever}},
    {kRounds,
     {"off_ps", [](WorkloadSpec& w, const Value& v) { w.off = v.whole(0, kLongest / 4); }}},
    {kTimed | kStreams,
     {"start_ps", [](WorkloadSpec& w, const Value& v) { w.start = v.whole(0, kLongest); }}},
    {kTimed,
     {"stop_ps",
      [](WorkloadSpec& w, const Value& v) {
        w.stop = v.whole(-1, kLongest);
        if (w.stop < 0) w.stop = kNever;
      }}},
    {kOpen,
     {"repeat_ps", [](WorkloadSpec& w, const Value& v) { w.repeat = v.whole(0, kLongest); }}},
    {kRounds | kStorage,
     {"rounds", [](WorkloadSpec& w, const Value& v) { w.rounds = v.whole(0, kLongest); }}},
    {kAll,
     {"priority",
      [](WorkloadSpec& w, const Value& v) { w.priority = static_cast<unsigned>(v.whole(0, 7)); }}},
};

std::vector<Field<WorkloadSpec>> fields_of(Pattern pattern) {
  std::vector<Field<WorkloadSpec>> fields;
  for (const WorkloadField& row : kWorkload) {
    if (row.patterns & of(pattern)) fields.push_back(row.field);
  }
  return fields;
}

void expect_host(const Line& line, const Scenario& scenario, int host) {
  const std::string text = std::to_string(host);
  host_of(line, scenario, Value(line, "host", text));
}

// those who ask and those who answer are different hosts, each named once
void check_apart(const Line& line, const WorkloadSpec& w) {
  std::vector<int> all = w.hosts;
  all.insert(all.end(), w.dsts.begin(), w.dsts.end());
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice != all.end()) line.fail("names host " + std::to_string(*twice) + " twice");
}

void check_storage(const Line& line, const WorkloadSpec& w) {
  check_apart(line, w);
  if (w.dsts.size() <= static_cast<std::size_t>(w.copies)) {
    line.fail("copies = " + std::to_string(w.copies) + "; expected fewer than the " +
              std::to_string(w.dsts.size()) + " storage nodes");
  }
  if (w.block_max < w.block_min || w.block_max % w.block_min != 0 ||
      w.block_max / w.block_min > 0xFFFFFFFF) {
    line.fail("block_max = " + std::to_string(w.block_max) + "; expected a multiple of block_min " +
              std::to_string(w.block_min));
  }
}

void check(const Line& line, const Scenario& scenario, const WorkloadSpec& w) {
  for (const int host : w.hosts) expect_host(line, scenario, host);
  for (const int host : w.dsts) expect_host(line, scenario, host);
  for (const Transfer& t : w.transfers) {
    expect_host(line, scenario, t.src);
    expect_host(line, scenario, t.dst);
    if (t.src == t.dst) line.fail("host " + std::to_string(t.src) + " sends to itself");
  }
  const bool listed = w.pattern == Pattern::kPairs || w.pattern == Pattern::kFlows;
  if (!listed && w.hosts.empty()) line.fail("hosts is empty; expected at least one");
  if (w.pattern == Pattern::kPoisson) {
    if (w.cdf >= static_cast<int>(scenario.cdfs.size())) {
      line.fail("cdf " + std::to_string(w.cdf) + " does not exist; expected it on a line before");
    }
    if (w.dsts.empty()) line.fail("dsts is empty; expected at least one");
  }
  if (w.pattern == Pattern::kStreams) {
    if (w.dsts.empty()) line.fail("dsts is empty; expected at least one");
    if (w.start > kLongest - w.within) line.fail("start_ps + within_ps is beyond any time");
    for (const int host : w.hosts) {
      if (std::find(w.dsts.begin(), w.dsts.end(), host) == w.dsts.end()) continue;
      line.fail("host " + std::to_string(host) + " is in hosts and in dsts; expected it in one");
    }
  }
  if (w.pattern == Pattern::kRing && w.hosts.size() < 2) line.fail("a ring needs at least 2 hosts");
  if (w.pattern == Pattern::kParameterServer) check_apart(line, w);
  if (w.pattern == Pattern::kStorage) check_storage(line, w);
  if (reacts(w.pattern) && scenario.workloads.size() >= kMostReacting) {
    line.fail("comes after " + std::to_string(kMostReacting) + " workloads; expected fewer");
  }
}

}  // namespace

void read_cdf(const Line& line, Scenario& scenario) {
  struct Count {
    std::int64_t points = -1;
  };
  static const Field<Count> table[] = {
      {"points", [](Count& c, const Value& v) { c.points = v.whole(1, 1'000'000); }}};
  Count count;
  read_keys<Count>(line, table, count);
  if (line.values().empty()) line.fail("expected its number, then bytes:probability ...");
  const auto number = static_cast<std::int64_t>(scenario.cdfs.size());
  if (Value(line, "number", line.values()[0]).whole(0, 65535) != number) {
    line.fail("number = " + shown(line.values()[0]) + "; expected " + std::to_string(number) +
              ", cdfs are numbered in order");
  }
  Cdf cdf;
  for (std::size_t i = 1; i < line.values().size(); ++i) {
    const Value point(line, "point", line.values()[i]);
    const auto colon = point.text().find(':');
    if (colon == std::string_view::npos) point.refuse("bytes:probability");
    cdf.push_back({point.part("bytes", 0, colon).real(0, static_cast<double>(kMostBytes)),
                   point.part("probability", colon + 1, point.text().size()).real(0, 1)});
    if (cdf.size() < 2) continue;
    const CdfPoint& before = cdf[cdf.size() - 2];
    if (cdf.back() == before || cdf.back().bytes < before.bytes ||
        cdf.back().probability < before.probability) {
      point.refuse("points that grow in bytes or probability and fall in neither");
    }
  }
  if (cdf.empty() || cdf.back().probability != 1.0) line.fail("the last probability must be 1");
  if (count.points >= 0 && count.points != static_cast<std::int64_t>(cdf.size())) {
    line.fail("points = " + std::to_string(count.points) + ", but there are " +
              std::to_string(cdf.size()));
  }
  scenario.cdfs.push_back(std::move(cdf));
}

void read_workload(const Line& line, Scenario& scenario) {
  line.expect_values(1, "one pattern, then keys");
  WorkloadSpec w;
  w.pattern = Value(line, "pattern", line.values()[0])
                  .choice<Pattern>({{"poisson", Pattern::kPoisson},
                                    {"alltoall", Pattern::kAllToAll},
                                    {"incast", Pattern::kIncast},
                                    {"permutation", Pattern::kPermutation},
                                    {"pairs", Pattern::kPairs},
                                    {"flows", Pattern::kFlows},
                                    {"ring", Pattern::kRing},
                                    {"streams", Pattern::kStreams},
                                    {"storage", Pattern::kStorage},
                                    {"parameter-server", Pattern::kParameterServer},
                                    {"job", Pattern::kJob}});
  read_keys<WorkloadSpec>(line, fields_of(w.pattern), w);
  check(line, scenario, w);
  scenario.workloads.push_back(std::move(w));
}

void read_flow(const Line& line, Scenario& scenario) {
  if (scenario.workloads.empty() || scenario.workloads.back().pattern != Pattern::kFlows) {
    line.fail("a flow must follow 'workload flows'");
  }
  line.expect_values(4, "src, dst, bytes and start in ps");
  line.expect_no_keys();
  const auto& values = line.values();
  Transfer t;
  t.src = host_of(line, scenario, Value(line, "src", values[0]));
  t.dst = host_of(line, scenario, Value(line, "dst", values[1]));
  t.bytes = size_of(Value(line, "bytes", values[2]));
  t.start = Value(line, "start", values[3]).whole(0, kLongest);
  if (t.src == t.dst) line.fail("host " + std::to_string(t.src) + " sends to itself");
  scenario.workloads.back().transfers.push_back(t);
}

}  // namespace dcqcn
