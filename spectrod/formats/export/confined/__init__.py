"""Reading of other people's files in processes that can do little else.

Libraries in C decode HDF5 and Blosc, and no check of what a file declares bounds what they do with
it. ``process`` starts a process for each file; ``child`` is that process, ``hdf5`` and ``blosc``
are what it does; ``messages`` is what both sides say.
"""
