"""Formats in which NICs and switches export flows: NetFlow, IPFIX, sFlow, headers of RoCE."""
