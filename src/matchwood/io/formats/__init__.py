"""The file formats: one module each reads and writes one of them."""
