"""Which vertices belong together.

connected_components             joined by paths, whatever the direction of their arcs
strongly_connected_components    joined by ways along the arcs, there and back
condensation                     what is left when each of those becomes one vertex

is_connected_components, is_strongly_connected_components, is_condensation
                                 is this answer right?
"""

from matchwood.components.connected import Components, connected_components
from matchwood.components.connected.check import is_connected_components
from matchwood.components.strong import strongly_connected_components
from matchwood.components.strong.check import is_strongly_connected_components
from matchwood.components.strong.condensation import Condensation, condensation
from matchwood.components.strong.condensation.check import is_condensation

__all__ = [
    "Components",
    "Condensation",
    "condensation",
    "connected_components",
    "is_condensation",
    "is_connected_components",
    "is_strongly_connected_components",
    "strongly_connected_components",
]
