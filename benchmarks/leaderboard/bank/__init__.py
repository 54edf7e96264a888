"""The keeper's making: the bank it is fitted on, the suite that stresses it, the fit."""
