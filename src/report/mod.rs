//! Summaries, CSV files and plots.
