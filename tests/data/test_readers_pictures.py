"""Reading the user's pictures: folders of them, and everything that can be wrong with them."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from relive._util.errors import DataError, InputError
from relive.data.readers.formats import read_any


class TestFolders:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        rng = np.random.default_rng(0)
        for name in ("cat", "dog"):
            (tmp_path / "pets" / name).mkdir(parents=True)
            for i in range(2):
                Image.fromarray(rng.integers(0, 256, (6, 4, 3), np.uint8)).save(tmp_path / "pets" / name / f"{i}.png")
        return tmp_path / "pets"

    def test_classes_are_folders(self, folder: Path) -> None:
        for litter in (".DS_Store", "Thumbs.db", "cat/desktop.ini", "dog/.hidden.png"):
            (folder / litter).write_bytes(b"")
        samples = read_any(folder, image=(8, 8))
        assert (samples.x.shape, samples.x.dtype.name, samples.image) == ((4, 64), "uint8", (8, 8))
        assert samples.y is not None
        assert samples.y.tolist() == ["cat", "cat", "dog", "dog"]
        assert samples.files == ("cat/0.png", "cat/1.png", "dog/0.png", "dog/1.png")

    def test_what_is_no_picture_is_counted(self, folder: Path) -> None:
        (folder / "cat" / "deep").mkdir()
        for name in ("notes.txt", "cat/3.heic", "cat/deep/4.heic"):
            (folder / name).write_bytes(b"")
        with pytest.warns(
            UserWarning, match=r"not images of a supported format, 3 in all, such as notes.txt: they are skipped"
        ):
            assert len(read_any(folder).x) == 4

    def test_pictures_below_a_class_are_refused(self, tmp_path: Path, folder: Path) -> None:
        with pytest.raises(InputError, match=r"images below the folders of its classes, such as pets/cat/0.png: put"):
            read_any(tmp_path)
        shutil.copytree(folder / "dog", folder / "cat" / "young" / "small")
        with pytest.raises(InputError, match=r"images below .*, such as cat/young/small/0.png: put them into the"):
            read_any(folder)

    def test_a_link_that_leads_nowhere_is_refused(self, folder: Path) -> None:
        (folder / "cat" / "q.png").symlink_to("gone.png")
        with pytest.raises(DataError, match=r"cat/q.png: it is a link to a missing file"):
            read_any(folder)

    def test_pixels_of_the_right_size_are_not_touched(self, folder: Path) -> None:
        samples = read_any(folder, image=(6, 4, 3))
        with Image.open(folder / "cat" / "1.png") as picture:
            assert samples.x[1].tolist() == np.asarray(picture).reshape(-1).tolist()

    def test_a_flat_folder_where_labels_are_not_needed(self, folder: Path) -> None:
        samples = read_any(folder / "cat", needed=False, image=(4, 4))
        assert (samples.y, samples.files) == (None, ("0.png", "1.png"))
        with pytest.raises(InputError, match=r"has images outside sub-folders, such as 0.png"):
            read_any(folder / "cat")

    def test_turned_as_the_camera_noted(self, tmp_path: Path) -> None:
        pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
        exif = Image.Exif()
        exif[0x0112] = 6  # rotate clockwise
        Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
        samples = read_any(tmp_path, needed=False, image=(4, 3))
        np.testing.assert_array_equal(samples.x.reshape(4, 3), np.rot90(pixels, -1))

    @pytest.mark.parametrize("orientation", range(1, 9))
    @pytest.mark.parametrize("kind", ["png", "tif", "jpg"])
    def test_all_ways_to_hold_a_camera(self, tmp_path: Path, orientation: int, kind: str) -> None:
        exif = Image.Exif()
        exif[0x0112] = orientation
        Image.fromarray(np.arange(12, dtype=np.uint8).reshape(3, 4)).save(tmp_path / f"a.{kind}", exif=exif)
        with Image.open(tmp_path / f"a.{kind}") as picture:
            expected = np.asarray(ImageOps.exif_transpose(picture))
        samples = read_any(tmp_path, needed=False, image=expected.shape)
        np.testing.assert_array_equal(samples.x.reshape(expected.shape), expected)

    def test_damaged_notes_of_a_camera(self, tmp_path: Path) -> None:
        """EXIF tags of impossible types, and truncated ones: the picture itself is intact."""
        pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
        tags = b"Exif\x00\x00II*\x00" + struct.pack("<IH", 8, 2)
        turned = struct.pack("<HHII", 0x0112, 3, 1, 6)
        notes = {
            "a": tags + turned + struct.pack("<HHII", 0x010E, 3, 1, 7) + bytes(4),  # a description that is a number
            "b": tags + turned + struct.pack("<HHII", 0x011A, 2, 1, 65) + bytes(4),  # a resolution that is a letter
            "c": tags + turned,
            "d": b"Exif\x00\x00nothing",
        }
        for name, note in notes.items():
            Image.fromarray(pixels).save(tmp_path / f"{name}.png", exif=note)
        samples = read_any(tmp_path, needed=False, image=(4, 3))
        for row in samples.x[:2]:
            np.testing.assert_array_equal(row.reshape(4, 3), np.rot90(pixels, -1))
        assert len(samples.x) == 4

    def test_grey_of_sixteen_bits_in_every_format(self, tmp_path: Path) -> None:
        (tmp_path / "a.pgm").write_bytes(b"P5 2 2 65535 " + np.array([0, 0x8000, 0xFFFF, 0x0100], ">u2").tobytes())
        (tmp_path / "b.pgm").write_bytes(b"P5 2 2 255 " + bytes([0, 128, 255, 1]))
        deep = np.array([[0, 0x8000], [0xFFFF, 0x0100]], dtype=np.int32)
        Image.fromarray(deep).save(tmp_path / "c.tif")
        assert read_any(tmp_path, needed=False, image=(2, 2)).x.tolist() == [[0, 128, 255, 1]] * 3
        Image.fromarray(deep + 1).save(tmp_path / "c.tif")
        with pytest.raises(
            DataError, match=r"c.tif: its pixels are not bytes, but numbers from 1 to 65536; store it with 8"
        ):
            read_any(tmp_path, needed=False)

    def test_sixteen_bits_palettes_and_transparency(self, tmp_path: Path) -> None:
        deep = np.array([[0, 0x8000], [0xFFFF, 0x0100]], dtype=np.uint16)
        Image.fromarray(deep).save(tmp_path / "a.png")
        glass = np.zeros((2, 2, 4), dtype=np.uint8)
        glass[0, 0, 3] = 255  # black; the rest is transparent
        Image.fromarray(glass).save(tmp_path / "b.png")
        Image.fromarray(np.full((2, 2), 7, dtype=np.uint8)).convert("P").save(tmp_path / "c.gif")
        samples = read_any(tmp_path, needed=False, image=(2, 2))
        assert samples.x.tolist() == [[0, 128, 255, 1], [0, 255, 255, 255], [7] * 4]

    def test_all_unreadable_pictures_are_named(self, folder: Path) -> None:
        (folder / "dog" / "2.jpg").write_bytes(b"no picture")
        whole = (folder / "cat" / "0.png").read_bytes()
        (folder / "cat" / "0.png").write_bytes(whole[: len(whole) // 2])
        Image.new("F", (2, 2)).save(folder / "cat" / "3.tif")
        with pytest.raises(DataError) as error:
            read_any(folder)
        message = str(error.value)
        assert "has images that cannot be read:\n  cat/0.png: " in message
        assert "cat/3.tif: its pixels are not bytes" in message
        assert "dog/2.jpg: it is not an image of a supported format" in message
        assert "1.png" not in message

    def test_nothing_there(self, tmp_path: Path, folder: Path) -> None:
        (folder / "cow").mkdir()
        with pytest.raises(InputError, match=r"has sub-folders without images: cow\. Supported formats: \.png, \.jpg"):
            read_any(folder)
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="has neither images nor sub-folders with images"):
            read_any(tmp_path / "empty")
        with pytest.raises(InputError, match="is a folder of images: it has no column 'when'"):
            read_any(folder, task_column="when")
