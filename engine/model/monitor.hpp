#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include <array>
namespace dcqcn {
struct FsdReport { double elephants=0,potential=0,mice=0,weighted_elephants=0,weighted_mice=0; std::array<double,16> bins{}; double kl=0; bool triggered=false; long monitor_bytes=0; bool known=true; };
struct MonitorConfig { static MonitorConfig from_options(const std::string&, const std::vector<std::pair<std::string,std::string>>&){return {};} };
struct Monitor { Monitor(const MonitorConfig&,int,std::uint64_t){} bool wants_packets() const {return false;} void record(int,std::uint32_t,std::uint32_t){} void end_interval(std::int64_t,FsdReport&){} };
}
