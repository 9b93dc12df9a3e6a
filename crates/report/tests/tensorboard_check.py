"""Reads event files back with TensorBoard's own reader and compares them with the lines of `--each evaluation`."""

import csv
import pathlib
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

folder, table = pathlib.Path(sys.argv[1]), sys.argv[2]
with open(table, newline="") as lines:
    rows = list(csv.DictReader(lines))
runs = sorted(path.parent for path in folder.rglob("events.out.tfevents.*"))
assert runs, f"no event files below {folder}"
compared = 0
for run in runs:
    reader = EventAccumulator(str(run), size_guidance={"scalars": 0})
    reader.Reload()
    tags = reader.Tags()["scalars"]
    assert {"accuracy/any-time", "training/loss", "training/rate"} <= set(tags), tags
    own = [row for row in rows if f"{row['label']}-seed{row['seed']}" == run.name]
    points = reader.Scalars("accuracy/any-time")
    assert len(points) == len(own), (run, len(points), len(own))
    for point, row in zip(points, own):
        assert point.step == int(row["samples"]), (run, point, row)
        assert abs(point.value - float(row["accuracy"])) < 1e-6, (run, point, row)
        compared += 1
print(f"{len(runs)} runs, {compared} evaluations read back by TensorBoard as they are in the table")
