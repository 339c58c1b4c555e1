"""The CPU engine: pairs.py sets levels up, cycles.py applies them."""
