#include "job.hpp"

#include <sstream>
#include <stdexcept>

#include "model/base/random_stream.hpp"
#include "model/settings/knob_tables.hpp"
#include "report_fields.hpp"

namespace dcqcn::fuzz {
namespace {

std::vector<double> numbers(std::istringstream& in, std::size_t expected) {
  std::vector<double> out;
  std::string word;
  while (in >> word) out.push_back(std::stod(word));
  if (out.size() != expected) throw std::invalid_argument("wrong number of values in the script");
  return out;
}

// SI values of one NIC; schemes other than DCQCN need their own `nic` lines
void assign_row(std::vector<double>& rows, std::size_t columns, const std::string& which,
                const std::vector<double>& row) {
  const std::size_t hosts = rows.size() / columns;
  for (std::size_t h = 0; h < hosts; ++h) {
    if (which != "*" && h != std::stoul(which)) continue;
    std::copy(row.begin(), row.end(), rows.begin() + static_cast<std::ptrdiff_t>(h * columns));
  }
}

template <class T, class Do>
void for_each_row(std::vector<T>& rows, const std::string& which, Do&& act) {
  if (which != "*") return act(rows.at(std::stoul(which)));
  for (T& row : rows) act(row);
}

std::uint64_t hash_of(const std::string& text) {
  std::uint64_t h = 0;
  for (const char c : text) h = mix64(h * 31 + static_cast<unsigned char>(c));
  return h;
}

}  // namespace

std::string Job::compiled() const {
  std::string out;
  for (const std::string& line : scenario) out += line + "\n";
  return out;
}

std::string Job::text() const {
  std::string out = compiled();
  for (const std::string& line : script) out += line + "\n";
  return out;
}

Job Job::parse(const std::string& text) {
  Job job;
  std::istringstream in(text);
  std::string line;
  bool ended = false;
  while (std::getline(in, line)) {
    if (line.empty() || line[0] == '#') continue;
    (ended ? job.script : job.scenario).push_back(line);
    if (line == "end") ended = true;
  }
  if (job.script.empty() || job.script[0].rfind("seed ", 0) != 0) {
    throw std::invalid_argument("expected a compiled scenario, then a script beginning with seed");
  }
  return job;
}

Player::Player(const Job& job, const std::string& engine, int splits, std::size_t threads)
    : splits_(splits) {
  const std::uint64_t seed = std::stoull(job.script.at(0).substr(5));
  simulation_ = std::make_unique<Simulation>(job.compiled(), seed, engine, threads);
  const NicSchemes& schemes = simulation_->schemes();
  nics_.resize(static_cast<std::size_t>(simulation_->topology().hosts()) * schemes.columns());
  for (int h = 0; h < simulation_->topology().hosts(); ++h) {
    double* row = nics_.data() + static_cast<std::size_t>(h) * schemes.columns();
    for (const KnobRow& knob : schemes.of(h).names().knobs) *row++ = knob.initial_si();
  }
  ecns_.resize(static_cast<std::size_t>(simulation_->topology().port_count()));
}

void Player::run(Time until) {
  const Time from = simulation_->now();
  for (int i = 1; i <= splits_; ++i) {  // uneven steps, among them empty ones
    const std::uint64_t draw = mix64(static_cast<std::uint64_t>(until) + static_cast<unsigned>(i));
    const Time left = until - simulation_->now();
    simulation_->advance(simulation_->now() +
                         static_cast<Time>(draw % static_cast<std::uint64_t>(left / 2 + 1)));
    simulation_ = simulation_->clone();
  }
  simulation_->advance(std::max(from, until));
}

bool Player::play(const std::string& line) {
  std::istringstream in(line);
  std::string word, which;
  in >> word;
  if (word == "nic") {
    in >> which;
    const std::size_t columns = simulation_->schemes().columns();
    assign_row(nics_, columns, which, numbers(in, columns));
  } else if (word == "ecn") {
    in >> which;
    const EcnSetting curve = EcnSetting::from_si(numbers(in, ecn_knobs().size()).data());
    for_each_row(ecns_, which, [&](EcnSetting& row) {
      const double alpha = row.pfc_alpha;
      row = curve;
      row.pfc_alpha = alpha;
    });
  } else if (word == "alpha") {
    in >> which;
    const double alpha = numbers(in, 1).front();
    for_each_row(ecns_, which, [&](EcnSetting& row) { row.pfc_alpha = alpha; });
  } else if (word == "apply") {
    const std::size_t columns = simulation_->schemes().columns();
    simulation_->apply({nics_.data(), nics_.size() / columns, columns}, ecns_);
  } else if (word == "run") {
    Time until = 0;
    in >> until;
    run(until);
  } else if (word == "report") {
    report_ = &simulation_->report();
    return true;
  } else if (word != "seed") {
    throw std::invalid_argument("unknown word in the script: " + word);
  }
  return false;
}

Verdict digest(const Job& job, const std::string& engine, std::size_t threads) {
  Verdict verdict;
  Player player(job, engine, 0, threads);
  for (const std::string& line : job.script) {
    if (player.play(line))
      verdict.digest =
          Fields(player.report(), player.simulation().topology()).digest(verdict.digest);
  }
  const Totals& totals = player.simulation().totals();
  verdict.hops = totals.hops;
  verdict.pauses = totals.pauses;
  verdict.drops = totals.drops;
  return verdict;
}

Verdict compare(const Job& job) {
  Verdict verdict;
  const std::uint64_t h = hash_of(job.compiled());
  // a bound of 0.1 to 2 us on the windows, whatever the links allow
  const std::string bounded = "window:" + std::to_string(100'000 + h % 1'900'000);
  Player window(job, "window");
  Player oracle(job, "event", 1);
  Player cut(job, bounded, 3);
  int reports = 0;
  for (const std::string& line : job.script) {
    const bool done = window.play(line);
    oracle.play(line);
    cut.play(line);
    if (!done) continue;
    const Fields fields(window.report(), window.simulation().topology());
    verdict.digest = fields.digest(verdict.digest);
    const std::string plain =
        fields.difference(Fields(oracle.report(), oracle.simulation().topology()));
    const std::string small = fields.difference(Fields(cut.report(), cut.simulation().topology()));
    const std::string where = "report " + std::to_string(reports++) + ": ";
    if (!plain.empty()) {
      verdict.difference = where + plain + " (window, event)";
    } else if (!small.empty()) {
      verdict.difference = where + small + " (window, " + bounded + ")";
    }
    if (!verdict.difference.empty()) break;
  }
  const Totals& totals = window.simulation().totals();
  verdict.hops = totals.hops;
  verdict.pauses = totals.pauses;
  verdict.drops = totals.drops;
  return verdict;
}

Verdict compare_threads(const Job& job) {
  Verdict verdict = digest(job);
  const std::string bounded =
      "window:" + std::to_string(100'000 + hash_of(job.compiled()) % 1'900'000);
  for (const std::string& engine : {std::string("window:20000000"), bounded}) {
    for (const std::size_t threads : {1, 2, 3, 8}) {
      if (digest(job, engine, threads).digest != verdict.digest) {
        verdict.difference = engine + " differs in " + std::to_string(threads) + " threads";
      }
    }
  }
  return verdict;
}

namespace {

bool fails(const Job& job, Verdict (*judge)(const Job&)) {
  try {
    return !judge(job).difference.empty();
  } catch (const std::exception&) {
    return false;  // not a valid job any more
  }
}

// remove chunks of lines, from half of them down to single ones
bool drop_lines(Job& job, std::vector<std::string> Job::* part, Verdict (*judge)(const Job&),
                int& attempts) {
  bool smaller = false;
  for (std::size_t chunk = (job.*part).size() / 2; chunk >= 1; chunk /= 2) {
    for (std::size_t at = 1; at < (job.*part).size() && attempts > 0;) {
      Job candidate = job;
      auto& lines = candidate.*part;
      const std::size_t n = std::min(chunk, lines.size() - at);
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at),
                  lines.begin() + static_cast<std::ptrdiff_t>(at + n));
      --attempts;
      if (fails(candidate, judge)) {
        job = candidate;
        smaller = true;
      } else {
        at += n;
      }
    }
  }
  return smaller;
}

}  // namespace

Job shrink(const Job& job, Verdict (*judge)(const Job&), int attempts) {
  Job best = job;
  bool smaller = true;
  while (smaller && attempts > 0) {
    smaller = drop_lines(best, &Job::script, judge, attempts);
    smaller |= drop_lines(best, &Job::scenario, judge, attempts);
  }
  return best;
}

}  // namespace dcqcn::fuzz
