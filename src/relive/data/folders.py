"""Samples from a folder of pictures, a sub-folder per class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from relive.data.samples import Array, Samples
from relive.errors import DataError, InputError

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
SHOWN = 10  # unreadable pictures that are named


def read_folder(path: Path, image: tuple[int, ...], needed: bool) -> Samples:
    """Read all pictures of a folder, turned upright as the camera noted and brought to one size, as bytes.

    Parameters
    ----------
    path
        The folder. The names of its sub-folders are the classes.
    image
        Height and width, and 3 for colour; without it pictures become grey.
    needed
        Whether there must be classes. If not, the pictures may also lie in the folder itself.
    """
    loose = _pictures(path)
    folders = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    classes = {folder.name: _pictures(folder) for folder in folders}
    empty = [name for name, pictures in classes.items() if not pictures]
    if empty:
        raise InputError(f"{path} has sub-folders without pictures: {', '.join(empty)}. Known are {_known()}")
    if loose and (needed or classes):
        raise InputError(
            f"{path} has pictures that are in no sub-folder, such as {loose[0].name}: put each into the sub-folder of "
            "its class"
        )
    if not loose and not classes:
        raise InputError(f"{path} has neither pictures nor sub-folders with pictures. Known are {_known()}")
    files = [*loose, *(file for pictures in classes.values() for file in pictures)]
    pixels = np.empty((len(files), *image), dtype=np.uint8)
    unreadable = []
    for i, file in enumerate(files):
        try:
            pixels[i] = _pixels(file, image)
        except DataError as error:
            unreadable.append(f"{file.relative_to(path)}: {error}")
    if unreadable:
        more = [f"and {len(unreadable) - SHOWN} more"] if len(unreadable) > SHOWN else []
        raise DataError("\n  ".join([f"{path} has pictures that cannot be read:", *unreadable[:SHOWN], *more]))
    counts = [len(pictures) for pictures in classes.values()]
    return Samples(
        pixels.reshape(len(files), -1),
        np.repeat(list(classes), counts) if classes else None,
        files=tuple(file.relative_to(path).as_posix() for file in files),
        image=image,
    )


def _pictures(folder: Path) -> list[Path]:
    return sorted(
        entry
        for entry in folder.iterdir()
        if entry.suffix.lower() in EXTENSIONS and entry.is_file() and not entry.name.startswith(".")
    )


def _known() -> str:
    return ", ".join(EXTENSIONS)


def _pixels(file: Path, image: tuple[int, ...]) -> Array:
    """Read one picture."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with Image.open(file, formats=FORMATS) as opened:
            picture = ImageOps.exif_transpose(opened)
    except UnidentifiedImageError:
        raise DataError("it is not a picture of a known format") from None
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise DataError(str(error)) from error
    if picture.mode.startswith("I;16"):  # Pillow would cut off all but the darkest
        picture = Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
    elif picture.mode in ("I", "F"):
        raise DataError("its pixels are not bytes; store it with 8 or 16 bits per channel")
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture)
    picture = picture.convert("RGB" if len(image) == 3 else "L")
    height, width = image[:2]
    return np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))
