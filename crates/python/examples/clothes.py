"""Clothes arrive two kinds at a time; a learner with a memory, and one without.

Run it as it is, or cell by cell in an editor that knows `# %%`.
"""

# %% A stream of real images, built in: five tasks of two kinds of clothing, 80 images a kind.
import numpy as np

import dpcl

stream = dpcl.streams(scenario="disjoint", tasks=5, per_class=80, seed=1)
test_images, test_labels = stream.test.arrays()
print(stream)


# %% How many test images of the classes met so far are answered rightly, in per cent.
def accuracy(learner: dpcl.Learner) -> float:
    met = [number for number, label in enumerate(test_labels) if label in learner.labels]
    answers = learner.predict_many(test_images[met])
    return 100 * float(np.mean([answer == test_labels[number] for answer, number in zip(answers, met)]))


# %% Rehearsal of 100 stored images, and plain training. Both see every image once, one at a time.
for method in ("er", "finetune"):
    learner = dpcl.Learner(method=method, memory=100, width=8, updates=2, mean=stream.mean, std=stream.std)
    curve = []
    for task in stream.tasks:
        for image, label in task:
            learner.learn_one(image, label)
        curve.append(f"{accuracy(learner):.0f} %")
    print(f"{method}: {', '.join(curve)}")
    if method == "er":
        learner.save("clothes.ckpt")

# %% What was learned is taken up again, and a kind that nobody had announced is added.
learner = dpcl.Learner.load("clothes.ckpt")
stripes = np.zeros((32, 32, 3), np.uint8)
stripes[::4] = 255
learner.learn_many([np.roll(stripes, shift, axis=0) for shift in range(32)], ["stripes"] * 32)
print(learner)
print("stripes are called", learner.predict_one(stripes))
