"""Conformance kits: pytest base classes that say what a backend, an environment, a tuner must do.

Subclass one in a test file and supply its fixture; every inherited test then runs on yours:

    from dcqcn_gym.testing.backend_case import BackendCase

    class TestMyBackend(BackendCase):
        def new_backend(self):
            return MyBackend()
"""
