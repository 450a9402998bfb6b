"""Progress on a terminal, logs, summaries of a fit, plots, reports."""
