"""What a model does, in three pictures and on a page: margins, the ROC curve, the largest weights.

Run it: python examples/plot_model.py   (needs matplotlib: pip install 'cutsvm[plot]')
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import RocCurveDisplay
from sklearn.model_selection import train_test_split

from cutsvm import LinearSVC, report
from cutsvm.plotting import MarginDisplay, WeightsDisplay

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
X, y = (X - X.mean()) / X.std(), y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = LinearSVC(C=0.1).fit(X_train, y_train)

figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
MarginDisplay.from_estimator(model, X_test, y_test, ax=axes[0])
RocCurveDisplay.from_estimator(model, X_test, y_test, ax=axes[1])
WeightsDisplay.from_estimator(model, top=12, ax=axes[2])
figure.savefig("model.png")

report(model, X_test, y_test, file="model.html", source="breast cancer, rows held out")
print(f"within {100 * model.gap_:.2g} % of the optimum, {100 * model.score(X_test, y_test):.1f} % of new rows right")
