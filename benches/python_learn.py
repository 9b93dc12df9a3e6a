"""Learns a stream through the Python package and says how long that took; see `compare_python.py`."""

import json
import sys
import time

import dpcl

keys = json.loads(sys.argv[1])
by_one = "one" in sys.argv[2:3]
images, labels = [], []
for task in dpcl.streams(**keys).tasks:
    pictures, names = task.arrays()
    images.extend(pictures)
    labels.extend(names)

learner = dpcl.Learner(**keys)
begun = time.perf_counter()
if by_one:
    for image, label in zip(images, labels):
        learner.learn_one(image, label)
else:
    learner.learn_many(images, labels)
seconds = time.perf_counter() - begun
print(json.dumps({"seconds": seconds, "samples": learner.samples, "updates": learner.updates}))
if len(sys.argv) > 3:
    learner.save(sys.argv[3])
