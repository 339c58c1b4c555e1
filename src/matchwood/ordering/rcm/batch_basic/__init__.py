"""The basic batch method: ranges of the queue are worked on before it is known what is theirs.

A batch is a range of the queue.  A thread lists and sorts the free neighbours of its batch ahead
of time.  When all batches before it have done so too, it drops the neighbours that belong to
them.  Then it learns where its children go, writes them, and cuts them into new batches.

D. Mlakar, M. Winter, M. Parger, M. Steinberger. Speculative parallel reverse Cuthill-McKee
reordering on multi- and many-core architectures. IPDPS 2021. doi:10.1109/IPDPS49936.2021.00080
"""
