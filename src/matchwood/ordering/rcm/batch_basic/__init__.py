"""The basic batch method: threads find the children of ranges of the queue ahead of time.

A batch is a range of the queue.  A thread lists and sorts the free neighbours of its batch ahead
of time.  When all batches before it have done so too, it drops the neighbours that belong to
them.  Then a signal says where its children go; it writes them, and cuts them into new batches.

D. Mlakar, M. Winter, M. Parger, M. Steinberger. Speculative parallel reverse Cuthill-McKee
reordering on multi- and many-core architectures. IPDPS 2021. doi:10.1109/IPDPS49936.2021.00080
"""
