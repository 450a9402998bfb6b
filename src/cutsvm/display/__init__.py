"""What people look at: progress on a terminal, summaries of a fit, pictures, reports."""
