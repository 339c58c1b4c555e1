"""The batch method: as batch_basic, with less waiting.

Signals are sent as early as possible: a batch signals the number of its children before it sorts
them.
Children that do not fill a batch are left to the next one, so batches have about the same size.
A thread has several batches in work, and continues with any that need not wait.

D. Mlakar, M. Winter, M. Parger, M. Steinberger. Speculative parallel reverse Cuthill-McKee
reordering on multi- and many-core architectures. IPDPS 2021. doi:10.1109/IPDPS49936.2021.00080
"""
