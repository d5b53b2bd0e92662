"""OpenCL: devices, programs, one queue. The only package that imports pyopencl.

Code that must start without OpenCL imports this package late, as ``spectrod.analysis.engine`` does.
"""

import os

# pyopencl's own cache is a database that takes longer than the work it saves, and fails if it
# cannot be written, for example on a full disk. spectrod.opencl.program_cache stores programs.
os.environ.setdefault("PYOPENCL_NO_CACHE", "1")
