"""Kernel machines: how good is a model whose C and gamma are chosen by cross-validation?

Nested cross-validation over 8 x 8 parameters on 1,797 digits, which shares kernel values among folds, pairs of classes
and values of C, and a picture of the grid.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from cutsvm import KernelSVC, nested_cross_validate

X, y = load_digits(return_X_y=True)
X = X / 16.0
some = np.random.default_rng(0).permutation(len(y))[:600]  # all of them take a few seconds more

result = nested_cross_validate(X[some], y[some], estimator=KernelSVC(epochs=5), n_jobs=-1, random_state=0)
print(result)

model = KernelSVC(**result.best_params[0], random_state=0).fit(X[some], y[some])
rest = np.setdiff1d(np.arange(len(y)), some)
print(f"the other {len(rest)} digits: {100 * model.score(X[rest], y[rest]):.1f} % right")

result.plot_grid()
plt.savefig("kernel-grid.png")
