"""The same network behind FastAPI and PyTorch, for `benches/serve.py`. Takes image bytes, answers class probabilities.

Usage: serve_peer.py PORT THREADS
"""

import io
import sys

import numpy
import torch
import uvicorn
from fastapi import FastAPI, Request
from PIL import Image
from starlette.concurrency import run_in_threadpool

from torch_step import Network

torch.set_num_threads(int(sys.argv[2]))
torch.manual_seed(1)
CLASSES = 10
network = Network("slim", CLASSES).eval().to(memory_format=torch.channels_last)
# Folded and traced as one does for serving.
with torch.inference_mode():
    example = torch.zeros(1, 3, 32, 32).to(memory_format=torch.channels_last)
    forward = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(network, example)))
    for _ in range(10):
        forward(example)

app = FastAPI()


def answer(body):
    image = Image.open(io.BytesIO(body)).convert("RGB").resize((32, 32), Image.BILINEAR)
    pixels = (numpy.asarray(image, dtype=numpy.float32) / 255 - 0.5) / 0.25
    with torch.inference_mode():
        images = torch.from_numpy(pixels).permute(2, 0, 1)[None].contiguous(memory_format=torch.channels_last)
        shares = forward(images).softmax(1)[0].tolist()
    best = max(range(CLASSES), key=shares.__getitem__)
    return {"label": str(best), "probability": shares[best], "probabilities": dict(zip(map(str, range(CLASSES)), shares))}


@app.post("/predict")
async def predict(request: Request):
    return await run_in_threadpool(answer, await request.body())


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
