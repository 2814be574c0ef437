"""The foundation of everything else: files, errors, seeds, versions. It knows nothing about learning."""
