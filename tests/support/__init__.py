"""What several test modules share: builders of manifests, readers of answers, small clusters to run against."""
