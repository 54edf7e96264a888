"""Add-ons: a folder per pip extra; each has a README."""
