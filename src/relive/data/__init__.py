"""The images that tasks are made of, each data set known by the SHA-256 of its files."""

from relive.data.sources import DATASETS, RECIPES, Copy, Dataset, Recipe, data_home, load_data, survey

__all__ = ["DATASETS", "RECIPES", "Copy", "Dataset", "Recipe", "data_home", "load_data", "survey"]
