"""The reduced problem, a quadratic program over the planes of a bundle, and its interior-point method. Private."""
