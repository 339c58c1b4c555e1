"""The batch method: as batch_basic, with less waiting.

Signals are sent as early as possible: the number of children is told before they are sorted.
Children that do not fill a batch are left to the next one, so batches have about the same size.
A thread has several batches in work, and goes on with one that can go on.

D. Mlakar, M. Winter, M. Parger, M. Steinberger. Speculative parallel reverse Cuthill-McKee
reordering on multi- and many-core architectures. IPDPS 2021. doi:10.1109/IPDPS49936.2021.00080
"""
