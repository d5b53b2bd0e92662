"""OpenCL: devices, programs, one queue. The only package that imports pyopencl; it does so at once.

Whoever must start without OpenCL imports it late: ``spectrod.analysis.engine`` is the example.
"""

import os

# pyopencl looks up in a database what it makes anew in less time, and fails where that cannot be
# written, on a full disk for one. Programs are kept by spectrod.opencl.cache.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
