"""Invalid values, with the message of each."""

import numpy as np

BAD_CS = [
    ([], "Cs is empty"),
    ([1.0, -1.0], r"Cs\[1\]=-1.0: expected a finite number above 0"),
    ([0.0, 1.0], r"Cs\[0\]=0.0: expected"),
    ([1.0, np.nan], r"Cs\[1\]=nan: expected a finite number above 0"),
    ([1.0, np.inf], r"Cs\[1\]=inf"),
    ([2.0, 1.0], r"Cs\[1\]=1.0: after 2.0; expected each C once, in rising order"),
    ([1.0, 1.0], r"Cs\[1\]=1.0: the same again"),
    (["a"], r"Cs\[0\]='a': expected"),
    (0, "Cs=0: expected a whole number, at least 1"),
    (1.5, "Cs=1.5: expected numbers above 0 in rising order, or how many"),
    ("abc", "Cs='abc': expected numbers"),
    (True, "Cs=True: expected"),
]
