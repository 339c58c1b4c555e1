"""Which vertices belong together.

connected_components    joined by paths, whatever the direction of their arcs
"""

from matchwood.components.connected import Components, connected_components

__all__ = ["Components", "connected_components"]
