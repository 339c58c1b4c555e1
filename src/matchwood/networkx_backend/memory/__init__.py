"""NetworkX graphs read where they lie in memory, and the plain way where that is not safe."""
