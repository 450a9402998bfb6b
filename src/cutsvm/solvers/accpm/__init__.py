"""The analytic-centre cutting-plane method."""
