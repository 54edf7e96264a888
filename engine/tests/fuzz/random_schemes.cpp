#include "random_schemes.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "dice.hpp"
#include "model/settings/knob_tables.hpp"
#include "random_job.hpp"

namespace dcqcn::fuzz {
namespace {

class Schemer {
 public:
  Schemer(Job job, std::uint64_t seed, std::uint64_t number)
      : dice_(seed ^ 0x5C4E3Eull, number), job_(std::move(job)) {}

  Job make() {
    hosts_ = hosts_of(job_.scenario.at(1));
    std::erase_if(job_.scenario, [](const std::string& l) { return l.rfind("scheme ", 0) == 0; });
    first_ = &a_scheme();
    second_ = dice_.one_in(3) ? &a_scheme() : first_;
    if (second_ == first_) {
      insert("scheme name=" + std::string(first_->name));
    } else {
      split_ = static_cast<int>(dice_.whole(1, hosts_ - 1));
      insert("scheme name=" + std::string(second_->name));
      insert("scheme name=" + std::string(first_->name) + " hosts=" + numbers(split_));
    }
    give_rows();
    if (dice_.one_in(2)) pace_by_segments();
    return job_;
  }

 private:
  const SchemeKnobs& a_scheme() {
    const auto all = scheme_knobs();
    return all[static_cast<std::size_t>(dice_.whole(0, static_cast<std::int64_t>(all.size()) - 1))];
  }
  static int hosts_of(const std::string& nodes) {
    return std::stoi(nodes.substr(nodes.find("hosts=") + 6));
  }
  static std::string numbers(int n) {
    std::string s;
    for (int h = 0; h < n; ++h) s += (h ? "," : "") + std::to_string(h);
    return s;
  }
  void insert(const std::string& line) { job_.scenario.insert(job_.scenario.begin() + 2, line); }

  // where TIMELY runs
  void pace_by_segments() {
    const std::string timely = "scheme name=timely";
    for (std::string& line : job_.scenario) {
      if (line.rfind(timely, 0) == 0) line.insert(timely.size(), " pacing=segment");
    }
  }

  // rows of the job's script belong to DCQCN: each becomes one of the schemes of its hosts
  void give_rows() {
    std::vector<std::string> script;
    for (const std::string& line : job_.script) {
      if (line.rfind("nic ", 0) != 0) {
        script.push_back(line);
        continue;
      }
      std::istringstream in(line);
      std::string word, which;
      in >> word >> which;
      for (int h = 0; h < hosts_; ++h) {
        if (which == "*" || which == std::to_string(h)) script.push_back(row(h));
      }
    }
    job_.script = script;
  }
  std::string row(int host) {
    const std::vector<KnobRow>& rows = (host < split_ ? first_ : second_)->nic;
    const std::size_t columns = std::max(first_->nic.size(), second_->nic.size());
    const bool mild = dice_.one_in(2);
    std::ostringstream out;
    out.precision(17);
    out << "nic " << host;
    for (std::size_t i = 0; i < columns; ++i) {
      out << ' ' << (i >= rows.size() ? 0.0 : a_value(rows[i], mild));
    }
    return out.str();
  }
  double a_value(const KnobRow& row, bool mild) {
    const KnobRange tried = row.tried();
    if (mild && !dice_.one_in(4)) return row.initial_si();
    if (tried.low <= 0 && dice_.one_in(4)) return tried.low;
    const double low = tried.low > 0 ? tried.low : tried.high * 1e-3;
    const double value = row.log ? dice_.log_real(low, tried.high) : dice_.real(low, tried.high);
    const double unit = row.unit.si_per_unit;
    if (!row.integer) return value;
    return std::max(tried.low, static_cast<double>(whole(value / unit)) * unit);
  }

  Dice dice_;
  Job job_;
  int hosts_ = 0, split_ = 0;
  const SchemeKnobs* first_ = nullptr;
  const SchemeKnobs* second_ = nullptr;
};

}  // namespace

Job random_scheme_job(std::uint64_t seed, std::uint64_t number) {
  return Schemer(random_job(seed, number), seed, number).make();
}

}  // namespace dcqcn::fuzz
