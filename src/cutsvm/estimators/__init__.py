"""The scikit-learn estimators. Public names are those of `cutsvm`; modules with an underscore are private."""
