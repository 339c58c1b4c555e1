"""The serial method: one thread follows the queue.

The queue is the order itself.  Read its next vertex, append the free neighbours of that vertex,
and sort them by (degree, vertex).  All other methods must give the same order as this one.

E. Cuthill, J. McKee. Reducing the bandwidth of sparse symmetric matrices. ACM National Conference,
1969. doi:10.1145/800195.805928
"""
