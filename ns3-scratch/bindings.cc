// SPDX-License-Identifier: GPL-2.0-only
// The nanobind module dcqcn_gym._ns3: shape checks and conversions only, no logic.
#include <nanobind/nanobind.h>

#include "ns3/core-module.h"
#include "ns3/network-module.h"

NB_MODULE(_ns3, m) {
  ns3::Time::SetResolution(ns3::Time::PS);
  m.attr("NS3_PACKET_UID") = ns3::Create<ns3::Packet>(10)->GetUid();
}
