"""The crash matrix: how each variant of an answer ends for every place of a crash."""
