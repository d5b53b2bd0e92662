"""OpenCL: devices, programs, one queue. The only package that imports pyopencl; it does so at once.

Whoever must start without OpenCL imports it late: ``spectrod.analysis.engine`` is the example.
"""
