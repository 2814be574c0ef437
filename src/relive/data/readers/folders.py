"""Samples from a folder of images, one sub-folder per class."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relive._util.errors import DataError, InputError
from relive.data.readers.samples import Array, Samples

if TYPE_CHECKING:
    from PIL.Image import Image

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
LITTER = ("thumbs.db", "desktop.ini", "ehthumbs.db")  # left behind by file managers
SHOWN = 10  # unreadable images that are named
ORIENTATION = 0x0112  # the EXIF tag for the camera's orientation


def read_folder(path: Path, image: tuple[int, ...], needed: bool) -> Samples:
    """Read all images of a folder as bytes, rotated upright by their EXIF orientation and resized to one size.

    Parameters
    ----------
    path
        The folder. The names of its sub-folders are the classes.
    image
        Height and width, plus 3 for colour; otherwise images become grey.
    needed
        Whether there must be classes. If not, images may also be in the folder itself.
    """
    loose = _pictures(path)
    folders = [entry for entry in _entries(path) if entry.is_dir()]
    classes = {folder.name: _pictures(folder) for folder in folders}
    _check_all_are_seen(path, folders)
    empty = [name for name, pictures in classes.items() if not pictures]
    if empty:
        raise InputError(f"{path} has sub-folders without images: {', '.join(empty)}. Supported formats: {_known()}")
    if loose and (needed or classes):
        raise InputError(
            f"{path} has images outside sub-folders, such as {loose[0].name}: put each into the sub-folder of its class"
        )
    if not loose and not classes:
        raise InputError(f"{path} has neither images nor sub-folders with images. Supported formats: {_known()}")
    files = [*loose, *(file for pictures in classes.values() for file in pictures)]
    pixels = np.empty((len(files), *image), dtype=np.uint8)
    unreadable = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's, about oddities in files that it can read
        for i, file in enumerate(files):
            try:
                pixels[i] = _pixels(file, image)
            except DataError as error:
                unreadable.append(f"{file.relative_to(path)}: {error}")
    if unreadable:
        more = [f"and {len(unreadable) - SHOWN} more"] if len(unreadable) > SHOWN else []
        raise DataError("\n  ".join([f"{path} has images that cannot be read:", *unreadable[:SHOWN], *more]))
    counts = [len(pictures) for pictures in classes.values()]
    return Samples(
        pixels.reshape(len(files), -1),
        np.repeat(list(classes), counts) if classes else None,
        files=tuple(file.relative_to(path).as_posix() for file in files),
        image=image,
    )


def files_of(path: Path) -> list[Path]:
    """Return all files below a folder except hidden ones and those left by file managers, by name."""
    return sorted(_files_below(path), key=lambda file: file.relative_to(path).as_posix())


def picture_shapes(path: Path) -> set[tuple[int, ...]]:
    """Return the shapes of the images below a folder: height and width, plus 3 for colour.

    Unreadable ones are skipped: reading the folder names them.
    """
    from PIL import Image

    shapes: set[tuple[int, ...]] = set()
    for file in filter(Path.is_file, filter(_is_picture, files_of(path))):
        with contextlib.suppress(Exception), warnings.catch_warnings():  # Pillow raises errors of every kind
            warnings.simplefilter("ignore")
            with Image.open(file, formats=FORMATS) as picture:
                width, height = picture.size
                turned = picture.getexif().get(ORIENTATION, 1) >= 5
                grey = picture.mode.startswith(("1", "L", "I", "F"))
            shapes.add(((width, height) if turned else (height, width)) + (() if grey else (3,)))
    return shapes


def _entries(folder: Path) -> list[Path]:
    """Return a folder's entries except hidden ones and those left by file managers."""
    return sorted(e for e in folder.iterdir() if not e.name.startswith(".") and e.name.lower() not in LITTER)


def _pictures(folder: Path) -> list[Path]:
    return [entry for entry in _entries(folder) if _is_picture(entry)]


def _is_picture(path: Path) -> bool:
    """Return whether a path has an image's name; links are not followed."""
    return path.suffix.lower() in EXTENSIONS and not path.is_dir()


def _check_all_are_seen(path: Path, folders: list[Path]) -> None:
    """Refuse images too deep to belong to a class; warn about files that are not images."""
    inner = [entry for folder in folders for entry in _entries(folder)]
    deeper = [file for entry in inner if entry.is_dir() for file in _files_below(entry)]
    buried = next(filter(_is_picture, deeper), None)
    if buried is not None:
        raise InputError(
            f"{path} has images below the folders of its classes, such as {buried.relative_to(path)}: put them "
            "into the folder of their class, or give the folder whose sub-folders are the classes"
        )
    others = [entry for entry in [*_entries(path), *inner, *deeper] if not entry.is_dir() and not _is_picture(entry)]
    if others:
        warnings.warn(
            f"{path} has files that are not images of a supported format, {len(others):,} in all, such as "
            f"{others[0].relative_to(path)}: they are skipped. Supported formats: {_known()}",
            stacklevel=2,
        )


def _files_below(folder: Path) -> Iterator[Path]:
    for entry in _entries(folder):
        if entry.is_dir() and not entry.is_symlink():
            yield from _files_below(entry)
        else:
            yield entry


def _known() -> str:
    return ", ".join(EXTENSIONS)


def _pixels(file: Path, image: tuple[int, ...]) -> Array:
    """Read one image."""
    from PIL import Image, UnidentifiedImageError

    if file.exists() and not file.is_file():
        raise DataError("it is not a regular file, but a pipe or a device")
    try:
        with Image.open(file, formats=FORMATS) as opened:
            opened.load()
            picture = _upright(opened)
    except UnidentifiedImageError:
        raise DataError("it is not an image of a supported format") from None
    except FileNotFoundError:
        raise DataError("it is a link to a missing file") from None
    except OSError as error:
        raise DataError(error.strerror or str(error)) from error
    except Exception as error:  # Pillow raises errors of every kind for damaged files
        raise DataError(str(error)) from error
    picture = _in_bytes(picture)
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    picture = picture.convert("RGB" if len(image) == 3 else "L")
    height, width = image[:2]
    return np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))


def _upright(picture: Image) -> Image:
    """Rotate an image upright by its EXIF orientation, whatever else is wrong with its EXIF data."""
    from PIL.Image import Transpose

    try:
        noted = picture.getexif().get(ORIENTATION)
    except Exception:  # ignore damaged EXIF data, as image viewers do
        noted = None
    turns = {
        2: Transpose.FLIP_LEFT_RIGHT,
        3: Transpose.ROTATE_180,
        4: Transpose.FLIP_TOP_BOTTOM,
        5: Transpose.TRANSPOSE,
        6: Transpose.ROTATE_270,
        7: Transpose.TRANSVERSE,
        8: Transpose.ROTATE_90,
    }
    return picture.transpose(turns[noted]) if noted in turns else picture.copy()


def _in_bytes(picture: Image) -> Image:
    """Convert 16-bit pixels to 8 bits; Pillow itself would clip all but the darkest."""
    from PIL import Image

    if picture.mode.startswith("I;16") or picture.mode in ("I", "F"):
        values = np.asarray(picture)
        if picture.mode == "F" or values.min() < 0 or values.max() > 0xFFFF:
            raise DataError(
                f"its pixels are not bytes, but numbers from {values.min():g} to {values.max():g}; store it "
                "with 8 or 16 bits per channel"
            )
        return Image.fromarray((values >> 8).astype(np.uint8))
    return picture
