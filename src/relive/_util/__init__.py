"""What everything else stands on: files, errors, seeds, versions. It knows nothing of learning."""
