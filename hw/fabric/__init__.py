"""The digital fabric: devices that are files and Redis servers, played by a simulation."""
