"""Print the highest bin of every spectrum: python subscribe.py [ENDPOINT]."""

import json
import sys

import numpy as np
import zmq

socket = zmq.Context.instance().socket(zmq.SUB)
socket.subscribe("spec/")
socket.connect(sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:5556")
while True:
    topic, header, payload = socket.recv_multipart()
    h = json.loads(header)
    values = np.frombuffer(payload, h["dtype"]).reshape(h["shape"])
    k = values.argmax()
    hertz = (h.get("first_bin", 0) + k) * h["fs"] / h["nfft"]
    print(f"{topic.decode()} {hertz:.1f} Hz {values[k]:.2f} {h['unit']}", flush=True)
