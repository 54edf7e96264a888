"""Datagrams of switches that tell flows: sFlow v5, NetFlow v9 and IPFIX, read strictly."""
