"""What is wrong with this machine for spectrod, and the command that mends it.

Each probe looks at one part, changes nothing, and runs in a thread of its own with a time limit;
drivers are tried in a process of their own, which may crash or hang.
"""
