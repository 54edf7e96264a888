"""What collects the flow records that switches export."""
