"""RMSNorm-Mul-RoPE of 24 heads x 128, 4096 tokens in PyTorch, eager and compiled: the peer of cuda-kernel-bench rope."""

import torch

HEADS, TOKENS, D, SETS = 24, 4096, 128, 10


def work(x, pe, weight):
    y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight
    y = y.view(TOKENS, HEADS, D // 2, 1, 2)
    return (pe.view(TOKENS, 1, D // 2, 2, 2) * y).sum(-1).reshape(TOKENS, HEADS, D)


def replay_us(function, sets, weight):
    for x, pe in sets[:3]:
        function(x, pe, weight)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    kept = []
    with torch.cuda.graph(graph):
        for x, pe in sets:
            kept.append(function(x, pe, weight))
    times = []
    for _ in range(23):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        times.append(1e3 * start.elapsed_time(stop) / len(sets))
    return sorted(times[3:])[10]


sets = [(torch.rand(TOKENS, HEADS, D, device="cuda"), torch.rand(TOKENS, D // 2, 4, device="cuda")) for _ in range(SETS)]
weight = torch.rand(D, device="cuda")
print(f"torch {torch.__version__}")
for name, function in (("eager", work), ("compiled", torch.compile(work))):
    print(f"{name}: {replay_us(function, sets, weight):.1f} us")
