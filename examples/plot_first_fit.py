"""A first fit: train, read the certificate, draw how the gap closed and where the time went.

Run it: python examples/plot_first_fit.py   (needs matplotlib: pip install 'cutsvm[plot]')
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cutsvm import LinearSVC
from cutsvm.plotting import plot_convergence, plot_time_breakdown

X, y = make_classification(20_000, 30, n_informative=10, flip_y=0.05, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

model = make_pipeline(StandardScaler(), LinearSVC(C=0.01, tol=1e-4, n_jobs=-1)).fit(X_train, y_train)
svm = model[-1]

print(f"{svm.lower_bound_:.4f} <= best possible <= {svm.objective_:.4f}, this model's objective")
print(f"proven to be within {100 * svm.gap_:.4f} % after {svm.n_iter_} iterations")
print(f"accuracy on new rows: {model.score(X_test, y_test):.3f}")

plot_convergence(svm)
plt.savefig("first_fit.png", dpi=120)
plot_time_breakdown(svm)
plt.savefig("first_fit_time.png", dpi=120)
