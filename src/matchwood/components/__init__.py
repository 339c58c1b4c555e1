"""Which vertices belong together.

connected_components             joined by paths, whatever the direction of their arcs
strongly_connected_components    joined by ways along the arcs, there and back
condensation                     what is left when each of those becomes one vertex
"""

from matchwood.components.connected import Components, connected_components
from matchwood.components.strong import strongly_connected_components
from matchwood.components.strong.quotient import Condensation, condensation

__all__ = [
    "Components",
    "Condensation",
    "condensation",
    "connected_components",
    "strongly_connected_components",
]
