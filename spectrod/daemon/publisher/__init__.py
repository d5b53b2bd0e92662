"""The sending half of the protocol: queues, encoders, and the thread that sends messages."""
