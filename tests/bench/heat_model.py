#!/usr/bin/env python3
"""How unevenly a table's partitions and servers are asked, by a model: is it worth to keep more
replicas of hot partitions?

    tests/bench/heat_model.py [--json FILE]

N-grams are drawn by Zipf's law over `--ngrams` of them; each has a row in every head of its size,
at random, as the hash does. Partitions have owners at random, as many on each server, as rendezvous
hashing does. A gather of many tokens asks for a row once, however often it is needed. Load counts
rows. With two replicas a client spreads the load of each partition over its owners; "hot" gives the
hottest partitions one more owner each, as many as take 1 % more memory.
"""
import argparse
import json

import numpy as np

SIZES, HEADS, PARTITIONS = 3, 8, 244  # n-gram sizes, heads of each, partitions of each head
TOTAL = SIZES * HEADS * PARTITIONS  # of one layer of V4.1, about


def zipf(count, exponent):
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def partition_load(random, args, exponent, tokens):
    """Rows that a gather of so many tokens asks of each partition, in the mean."""
    share = zipf(args.ngrams, exponent)
    # At least once among `tokens` draws.
    rows = share if tokens == 1 else -np.expm1(tokens * np.log1p(-share))
    load = np.empty(TOTAL)
    for head in range(SIZES * HEADS):
        where = random.integers(0, PARTITIONS, args.ngrams, dtype=np.uint32)
        load[head * PARTITIONS:(head + 1) * PARTITIONS] = np.bincount(where, rows, PARTITIONS)
    return load


def owners_of(random, servers, replicas):
    """[partition, replica]: distinct servers, each with the same number of partitions."""
    first = np.arange(TOTAL) % servers
    others = [(first + 1 + random.integers(0, servers - 1, TOTAL)) % servers for _ in range(replicas - 1)]
    return np.array([first] + others).T[random.permutation(TOTAL)]


def fill_lowest(level, amount):
    """What each of `level`, ascending, gets of `amount` so that the lowest are filled first."""
    share, level = np.zeros(len(level)), level.copy()
    for i in range(len(level)):
        top = level[i + 1] if i + 1 < len(level) else np.inf
        take = min(amount, (top - level[i]) * (i + 1))
        share[:i + 1] += take / (i + 1)
        amount -= take
        level[:i + 1] = top
        if amount <= 0:
            break
    return share


def spread(load, owners, servers, rounds=60):
    """Load of each server when every partition's load flows to the less loaded of its owners."""
    part = [np.full(len(o), 1 / len(o)) for o in owners]
    total = np.zeros(servers)
    for p, o in enumerate(owners):
        total[o] += load[p] * part[p]
    for _ in range(rounds):
        for p in np.argsort(-load)[:2000]:
            o = owners[p]
            if len(o) == 1:
                continue
            total[o] -= load[p] * part[p]
            order = np.argsort(total[o])
            part[p] = np.empty(len(o))
            part[p][order] = fill_lowest(total[o][order], load[p]) / max(load[p], 1e-300)
            total[o] += load[p] * part[p]
    return total


def with_hot_replicas(random, load, owners, servers):
    extra = int(0.01 * TOTAL * len(owners[0]))
    result = [np.array(o) for o in owners]
    for p in np.argsort(-load)[:extra]:
        others = np.setdiff1d(np.arange(servers), result[p])
        if len(others):
            result[p] = np.append(result[p], random.choice(others))
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ngrams", type=int, default=4_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json")
    args = parser.parse_args()
    rows = []
    print("%8s %8s %7s %8s | %17s | %s" % ("exponent", "tokens", "servers", "replicas", "hottest partition",
                                          "busiest server over the mean: as it is, hot 1 % more memory"))
    for exponent in (0.8, 1.0, 1.2):
        for tokens in (1, 64, 1024):
            random = np.random.default_rng(args.seed)
            load = partition_load(random, args, exponent, tokens)
            for servers, replicas in ((4, 1), (4, 2), (16, 1), (16, 2)):
                owners = owners_of(random, servers, replicas)
                plain = spread(load, list(owners), servers)
                hot = spread(load, with_hot_replicas(random, load, owners, servers), servers)
                row = dict(exponent=exponent, tokens=tokens, servers=servers, replicas=replicas,
                           hottest_partition=load.max() / load.mean(), busiest=plain.max() / plain.mean(),
                           busiest_with_hot_replicas=hot.max() / hot.mean())
                rows.append(row)
                print("%8.1f %8d %7d %8d | %17.1f | %.3f  %.3f" % (
                    exponent, tokens, servers, replicas, row["hottest_partition"], row["busiest"],
                    row["busiest_with_hot_replicas"]))
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"ngrams": args.ngrams, "seed": args.seed, "rows": rows}, out, indent=1)
            out.write("\n")


if __name__ == "__main__":
    main()
