"""Choose C: a whole path over C by cross-validation, every point with its certificate.

Run it: python examples/plot_path.py   (needs matplotlib: pip install 'cutsvm[plot]')
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from cutsvm import LinearSVCCV, linear_path
from cutsvm.plotting import PathDisplay

X, y = make_classification(5_000, 60, n_informative=8, flip_y=0.1, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# Ten C that suit the data, five folds: sixty fits for little more than six.
model = LinearSVCCV(Cs=10, cv=5, n_jobs=-1).fit(X_train, y_train)
print(f"C = {model.C_:.3g} of {model.Cs_[0]:.3g} to {model.Cs_[-1]:.3g}")
print(f"accuracy of the folds {model.scores_.mean(axis=0).max():.3f}, on new rows {model.score(X_test, y_test):.3f}")
print(f"every fit is proven to be within {100 * model.gaps_.max():.3f} % of its best possible objective")

PathDisplay.from_estimator(model, score_name="accuracy")
plt.savefig("path.png", dpi=120)

# The same without folds: one fitted LinearSVC for each C.
for each in linear_path(X_train, y_train, Cs=[1e-4, 1e-3, 1e-2]):
    print(f"C = {each.C:g}: gap {each.gap_:.1e}, {each.history_[-1]['passes']} passes over the data")
