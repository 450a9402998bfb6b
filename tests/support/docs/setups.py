"""Setups of the documentation's code blocks: names, and files in the current folder.

<!-- setup: NAME --> before a block calls one of these; names and files stay until the end of the page.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_digits

import cutsvm

Names = dict[str, Any]


def two_classes() -> Names:
    """X, y, X_test and y_test: 300 and 100 rows of 5 features; train.svm, train.svm.gz and test.svm."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 5))
    y = np.where(X @ [2.0, -1.0, 0.5, 0.0, 1.0] + random.normal(size=400) > 0.3, 1, -1)
    return parts(X, y, 300)


def numbers() -> Names:
    """The same with numbers to predict in place of classes; all rows are far from the origin."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 5)) + 3.0
    return parts(X, np.round(X @ [2.0, -1.0, 0.5, 0.0, 1.0] + 0.3 * random.normal(size=400), 4), 300)


def queries() -> Names:
    """The same with 20 queries, qid and qid_test, of 15 and 5 rows, some of which are wanted (1) and some not (0)."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 5))
    y = (X @ [2.0, -1.0, 0.5, 0.0, 1.0] + random.normal(size=400) > 0.3).astype(int)
    return parts(X, y, 300, np.arange(400) % 20)


def digits() -> Names:
    """train.svm and test.svm: 1,200 and 597 of scikit-learn's digits, divided by 16."""
    X, y = load_digits(return_X_y=True)
    return parts(X / 16, y, 1200)


def store() -> Names:
    """train.store, of two classes."""
    names = two_classes()
    cutsvm.convert((names["X"], names["y"]), "train.store")
    return names


def table() -> Names:
    """train.parquet, with labels in the column `click`."""
    from pyarrow import parquet, table

    names = two_classes()
    parquet.write_table(table({**dict(zip("abcde", names["X"].T, strict=True)), "click": names["y"]}), "train.parquet")
    return names


def parquet_files() -> Names:
    """data/part0.parquet to data/part2.parquet, with labels in the column `click`."""
    from pyarrow import parquet, table

    random = np.random.default_rng(0)
    Path("data").mkdir(exist_ok=True)
    for k in range(3):
        X = random.normal(size=(2000, 3))
        click = np.where(X @ [2.0, -1.0, 0.5] + random.normal(size=2000) > 0.3, "yes", "no")
        parquet.write_table(table({**dict(zip("abc", X.T, strict=True)), "click": click}), f"data/part{k}.parquet")
    return {}


def mixed_table() -> Names:
    """train.parquet, test.parquet, and score.parquet without labels: numbers, texts, dates and missing values."""
    from pyarrow import array, parquet, table

    rng = np.random.default_rng(0)
    for name, rows in (("train", 1000), ("test", 200), ("score", 200)):
        price, city = rng.normal(size=rows), np.array(["Oslo", "Paris", "Rome"])[rng.integers(0, 3, rows)]
        click = np.where(price + (city == "Paris") + 0.5 * rng.normal(size=rows) > 0.0, "yes", "no")
        price[::50] = np.nan
        columns = {"id": np.arange(rows), "price": array(price, from_pandas=True), "city": city}
        columns["day"] = np.datetime64("2024-01-01") + rng.integers(0, 300, rows)
        parquet.write_table(table(columns if name == "score" else {**columns, "click": click}), f"{name}.parquet")
    return {}


def shop() -> Names:
    """shop/year=.../part.parquet: numbers with missing ones, texts, dates, an id, and labels in `bought`."""
    from pyarrow import array, parquet, table

    rng = np.random.default_rng(0)
    for year in (2023, 2024):
        price = rng.normal(10.0, 2.0, 100)
        columns = {
            "id": np.arange(100),
            "price": array(price, mask=np.arange(100) % 10 == 3),
            "visits": rng.integers(0, 9, 100),
            "city": rng.choice(["Oslo", "Paris", "Rome"], 100),
            "day": array(rng.integers(19_000, 20_000, 100).astype("datetime64[D]")),
            "bought": np.where(price + rng.normal(size=100) > 10.0, "yes", "no"),
        }
        Path(f"shop/year={year}").mkdir(parents=True)
        parquet.write_table(table(columns), f"shop/year={year}/part.parquet")
    return {}


def parts(X: np.ndarray, y: np.ndarray, n: int, qid: np.ndarray | None = None) -> Names:
    """The first n rows to train on, the others to test."""
    for file, rows in (("train.svm", slice(n)), ("test.svm", slice(n, None))):
        dump_svmlight_file(X[rows], y[rows], file, zero_based=False, query_id=None if qid is None else qid[rows])
    Path("train.svm.gz").write_bytes(gzip.compress(Path("train.svm").read_bytes()))
    names = {"X": X[:n], "y": y[:n], "X_test": X[n:], "y_test": y[n:]}
    return names if qid is None else names | {"qid": qid[:n], "qid_test": qid[n:]}


SETUPS: dict[str, Callable[[], Names]] = {
    setup.__name__: setup
    for setup in (two_classes, numbers, queries, digits, store, table, parquet_files, mixed_table, shop)
}
