"""The GPU schedules that the cases time, as texts. A thread handles one row or a few; B4 varies the parameters."""

import re


def rows_schedule(rows=128, per_thread=1, trees=1, layout="sparse8", cache_rows=True, cache_trees=0, ahead=False,
                  code=False):
    """Returns a schedule in which a block handles `rows` rows, and a thread `per_thread` of them in lockstep through
    `trees` trees in lockstep. `cache_trees` trees are in shared memory at a time (0: none); if `ahead`, they are copied
    there while earlier trees are walked."""
    lines = ["encode(u8)"] if code else []
    lines += [f"tile(batch, b0, b, {rows})", f"tile(b, b1, b2, {per_thread})"]
    order = ["b0", "b1"]
    innermost_trees = "tree"
    if cache_trees:
        lines.append(f"tile(tree, t0, t1, {cache_trees})")
        order.append("t0")
        innermost_trees = "t1"
    if trees > 1:
        lines.append(f"tile({innermost_trees}, t2, t3, {trees})")
        order += ["t2", "b2", "t3"]
    else:
        order += [innermost_trees, "b2"]
    lines.append(f"reorder({', '.join(order)})")
    if cache_rows:
        lines.append("cache(b0)")
    if cache_trees:
        lines.append("cache(t0, 1)" if ahead else "cache(t0)")
    if trees > 1:
        lines.append("interleave(t3)")
    elif per_thread > 1:
        lines.append("interleave(b2)")
    of_trees = "t0" if cache_trees else "t2" if trees > 1 else "tree"
    lines += [f"layout({of_trees}, {layout})", "gpuDimension(b0, grid.x)", "gpuDimension(b1, block.x)"]
    return "\n".join(lines) + "\n"


# The candidates of forestvm in B3, which chooses among them as nvForest chooses its layout and chunk.
CANDIDATES = {
    "gpu": "gpu",
    "rapids-fil": "rapids-fil",
    "tahoe-shared-data": "tahoe-shared-data",
    "rows 128": rows_schedule(),
    "rows 256, 4 trees": rows_schedule(rows=256, trees=4),
    "rows 256, 16 cached trees": rows_schedule(rows=256, trees=4, cache_trees=16),
    "rows 256, 16 trees cached ahead": rows_schedule(rows=256, trees=4, cache_trees=16, ahead=True),
    "rows 256, 4 trees, codes": rows_schedule(rows=256, trees=4, layout="array4", code=True),
    "rows 32, global": rows_schedule(rows=32, cache_rows=False),
}

BASE = dict(rows=256, trees=4)
ABLATIONS = {
    "base: 256 rows, tile, 8-byte nodes in global memory, 4 trees": rows_schedule(**BASE),
    "rows in global memory": rows_schedule(**BASE, cache_rows=False),
    "16-byte nodes": rows_schedule(**BASE, layout="sparse16"),
    "4-byte nodes": rows_schedule(**BASE, layout="sparse4", code=True),
    "4-byte nodes, codes in global memory": rows_schedule(**BASE, layout="sparse4", cache_rows=False, code=True),
    "4-byte nodes, array": rows_schedule(**BASE, layout="array4", code=True),
    "4-byte nodes, array, in shared memory": rows_schedule(**BASE, layout="array4", cache_trees=16, code=True),
    "array": rows_schedule(**BASE, layout="array"),
    "nodes in shared memory": rows_schedule(**BASE, cache_trees=16),
    "nodes in shared memory, copied ahead": rows_schedule(**BASE, cache_trees=16, ahead=True),
    "1 tree": rows_schedule(rows=256, trees=1),
    "2 trees": rows_schedule(rows=256, trees=2),
    "2 rows a thread": rows_schedule(rows=256, per_thread=2),
    "4 rows a thread": rows_schedule(rows=256, per_thread=4),
    "32 rows": rows_schedule(rows=32, trees=4),
    "64 rows": rows_schedule(rows=64, trees=4),
    "128 rows": rows_schedule(rows=128, trees=4),
    "512 rows": rows_schedule(rows=512, trees=4),
    "1024 rows": rows_schedule(rows=1024, trees=4),
}

# Forms of blocks: rows, and threads that share the trees of each row. The schedule "gpu" chooses among most of them.
SHAPES = [(256, 1), (128, 1), (64, 1), (32, 1), (16, 1), (8, 1), (1, 32), (1, 64), (1, 128), (1, 256), (4, 32), (4, 64)]
SHAPES += [(8, 32), (8, 64), (16, 32), (32, 4), (32, 8), (32, 16), (32, 32), (64, 4), (64, 8), (128, 2), (128, 4)]


def shapes(trees, gpu):
    """Returns label -> schedule for a model of `trees` trees: every form of a block, with rows in shared memory and in
    global memory. `gpu` is the text of the model's schedule "gpu", which has the layout and the walks."""
    layout = re.search(r"layout\(t0, \w+\)", gpu).group()
    walks = ["interleave(t2)", *(["unrollWalk(t2)"] if "unrollWalk(t2)" in gpu else [])]
    found = {}
    for rows, threads in SHAPES:
        if threads == 1:
            lines = ["tile(tree, t0, t2, 4)", "reorder(b0, b1, t0, t2)"]
        elif trees < 2 * threads:
            continue
        else:
            share = -(-trees // threads // 4) * 4
            lines = [f"tile(tree, t0, t, {share})", "tile(t, t1, t2, 4)", "reorder(b0, t0, b1, t1, t2)"]
            lines += ["gpuDimension(t0, block.y)", "sharedReduce(t0)"]
        lines = [f"tile(batch, b0, b1, {rows})", *lines, "gpuDimension(b0, grid.x)", "gpuDimension(b1, block.x)", layout]
        found[f"{rows} x {threads}"] = "\n".join([*lines, *walks, "cache(b0)"])
        found[f"{rows} x {threads}, global"] = "\n".join([*lines, *walks])
    return found
