"""Traffic of a real network: files in, flows of a scenario and what they are like out."""
