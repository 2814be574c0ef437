"""Reading one's own data: every kind of file, and everything that can be wrong with one."""

from __future__ import annotations

import contextlib
import gzip
import shutil
import struct
import sys
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from PIL import Image, ImageOps

from relive._util.errors import DataError, InputError, ReliveError
from relive.data.readers.formats import read_any


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def npy(header: str) -> bytes:
    """An array of NumPy's format with this header, and nothing in it."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


class TestTables:
    def test_csv(self, tmp_path: Path) -> None:
        samples = read_any(write(tmp_path / "a.csv", "a,b,label\n1,0.1,x\n2,0.25,y\n"))
        assert samples.x.tolist() == [[1, 0.1], [2, 0.25]]
        assert samples.x.dtype == np.float64
        assert samples.y is not None
        assert samples.y.tolist() == ["x", "y"]
        assert samples.names == ("a", "b")

    def test_numbers_come_back_as_they_were_written(self, tmp_path: Path) -> None:
        values = np.random.default_rng(0).random((200, 3)) * 10.0 ** np.arange(-2, 1)
        pd.DataFrame(values, columns=list("abc")).to_csv(tmp_path / "a.csv", index=False)
        np.testing.assert_array_equal(read_any(tmp_path / "a.csv", needed=False).x, values)

    def test_a_mark_at_the_beginning_spaces_and_gzip(self, tmp_path: Path) -> None:
        text = "\ufefflabel, größe\n1, 2.5\n"
        (tmp_path / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
        samples = read_any(tmp_path / "a.csv.gz")
        assert (samples.names, samples.x.tolist()) == (("größe",), [[2.5]])

    def test_a_class_may_be_called_none(self, tmp_path: Path) -> None:
        samples = read_any(write(tmp_path / "a.csv", "a,label\n1,None\n2,NA\n3,nan\n"))
        assert samples.y is not None
        assert samples.y.tolist() == ["None", "NA", "nan"]

    @pytest.mark.parametrize("labels", [[1, 2], ["x", "y"], [True, False], [1.0, 2.0]])
    def test_labels_keep_their_kind(self, tmp_path: Path, labels: list[Any]) -> None:
        table = pd.DataFrame({"a": [1, 2], "label": labels})
        table.to_csv(tmp_path / "a.csv", index=False)
        table.to_parquet(tmp_path / "a.parquet")
        for name in ("a.csv", "a.parquet"):
            y = read_any(tmp_path / name).y
            assert y is not None
            assert y.tolist() == labels
            assert isinstance(y.tolist()[0], type(labels[0]))

    def test_parquet_keeps_bytes_and_single_precision(self, tmp_path: Path) -> None:
        for kind, read_as in ((np.uint8, np.uint8), (np.float32, np.float32), (np.int16, np.float64), (bool, float)):
            table = pd.DataFrame(np.eye(3).astype(kind), columns=list("abc"))
            table["label"] = pd.Categorical(["x", "y", "x"])
            table.to_parquet(tmp_path / "a.parquet")
            samples = read_any(tmp_path / "a.parquet")
            assert samples.x.dtype == read_as
            assert samples.x.tolist() == np.eye(3).tolist()
            assert samples.y is not None
            assert samples.y.tolist() == ["x", "y", "x"]

    def test_labels_and_tasks_are_no_features(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", "a,month,label\n1,May,x\n2,June,y\n")
        samples = read_any(path, task_column="month")
        assert (samples.names, samples.tasks) == (("a",), ("May", "June"))
        without = read_any(write(tmp_path / "b.csv", "a\n1\n"), needed=False)
        assert without.y is None

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "a,species\n1,x\n",
                "has no column 'label': it has 'a', 'species'; call the column of labels 'label', or give",
            ),
            ("a,b,label\n1,,x\n2,NA,x\n3,4,x\n", "column 'b' of .* has 2 missing values, the first in row 1: fill"),
            ("a,b,label\n1,2,x\n2,red,x\n", "column 'b' of .* is not numeric: row 2 has 'red'. Turn it into numbers"),
            (f"a,label\n1,x\n{'9' * 400},x\n", "column 'a' of .* is not numeric: row 2 has 9999"),
            ("a,label\n1,x\n2,\n", "column 'label' of .* has no value in row 2"),
            ("a,label\n1,x\ninf,y\n", "column 'a' of .* has an infinite value in row 2"),
            ("a,a,label\n1,2,x\n", "two columns 'a'"),
            (",a,label\n0,2,x\n", r"column 1 of .* has no name. If it only counts the rows, leave it out"),
            ("a;label\n2;x\n", "is separated by ';': write it with commas"),
            ("a,label\n1,x,7\n2,y,8\n", "row 1 of .* has 3 values for 2 columns: write a value that has a comma in"),
            ('a,label\n1,"x,\ny"\n\n2,y,8\n', "row 2 of .* has 3 values for 2 columns"),
            ("a,b,label\n1,True,x\n2,,x\n3,False,x\n", "'b' of .* has 1 missing value, in row 2: fill it in or leave"),
            ("a,label\n1,0.5\n2,1.5\n", "'label' of .* has 0.5 in row 1: labels are classes, .* give them names"),
            ('a,label\n1,x\n2,"  "\n', "column 'label' of .* has no value in row 2"),
            ("\n\n", "is empty"),
            ("a,b,label\n1,x\n", "column 'label' of .* has no value in row 1"),
            ("a,label\n", "has no rows"),
            ("label\nx\n", "has no columns besides 'label'"),
            ("", "is empty"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(ReliveError, match=message):
            read_any(write(tmp_path / "a.csv", text))

    @pytest.mark.parametrize(
        ("labels", "read"),
        [
            (["01", "1", "02"], ["01", "1", "02"]),
            (["1e5", "100000"], ["1e5", "100000"]),
            (["1", "1.0"], ["1", "1.0"]),
            (["1", "inf"], ["1", "inf"]),
            (["10", "-3 "], [10, -3]),
            (["18446744073709551615", "0"], [2**64 - 1, 0]),
            (["18446744073709551616", "18446744073709551617"], ["18446744073709551616", "18446744073709551617"]),
            (["9223372036854775809", "-1"], ["9223372036854775809", "-1"]),
            (["true", "True"], ["true", "True"]),
        ],
    )
    def test_labels_are_numbers_only_if_each_is_written_as_one(
        self, tmp_path: Path, labels: list[str], read: list[Any]
    ) -> None:
        path = write(tmp_path / "a.csv", "a,label\n" + "".join(f"1,{label}\n" for label in labels))
        y = read_any(path).y
        assert y is not None
        assert y.tolist() == read
        assert [type(label) for label in y.tolist()] == [type(label) for label in read]
        y = read_any(path, text_labels=True).y
        assert y is not None
        assert y.tolist() == [label.strip() for label in labels]

    def test_tasks_are_as_they_are_written(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", "a,when\n1,007\n2,1\n")
        assert read_any(path, needed=False, task_column="when").tasks == ("007", "1")
        write(path, "a,when\n1,007\n2,\n")
        with pytest.raises(InputError, match=r"column 'when' of .* has no value in row 2"):
            read_any(path, needed=False, task_column="when")

    def test_labels_that_are_to_be_filled_in_are_none(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", "a,label\n1,\n2, \n")
        pd.DataFrame({"a": [1.0, 2.0], "label": [None, None]}).to_parquet(tmp_path / "b.parquet")
        pd.DataFrame({"a": [1.0, 2.0], "label": ["", " "]}).to_parquet(tmp_path / "c.parquet")
        np.savez(tmp_path / "d.npz", X=[[1.0], [2.0]], y=["", ""])
        np.savez(tmp_path / "e.npz", X=[[1.0], [2.0]], y=[np.nan, np.nan])
        for path in sorted(tmp_path.iterdir()):
            samples = read_any(path, needed=False)
            assert (samples.y, samples.x.tolist()) == (None, [[1], [2]])
            with pytest.raises(InputError, match=r"'(label|y)' of .* has no value in row 1"):
                read_any(path)

    def test_a_file_in_capitals_that_begins_with_a_blank_line(self, tmp_path: Path) -> None:
        (tmp_path / "A.CSV.GZ").write_bytes(gzip.compress(b"\n\na,label\n2.5,x\n"))
        assert read_any(tmp_path / "A.CSV.GZ").x.tolist() == [[2.5]]

    def test_a_zipped_file_that_is_cut_short_or_damaged(self, tmp_path: Path) -> None:
        lines = "".join(f"{i},{i * i % 977},x\n" for i in range(9999))
        whole = gzip.compress(("a,b,label\n" + lines).encode())
        middle = len(whole) // 2
        for content in (whole[:middle], whole[:-9], whole[:middle] + b"\xff" * 99 + whole[middle + 99 :]):
            (tmp_path / "a.csv.gz").write_bytes(content)
            with pytest.raises(DataError, match=r"is not a CSV file that can be read: [^\n]*$"):
                read_any(tmp_path / "a.csv.gz")

    def test_numbers_that_numpy_has_no_type_for(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.csv", "a,label\n100000000000000000000,x\n1,y\n")
        assert read_any(path).x.tolist() == [[1e20], [1]]
        pd.DataFrame({"a": [Decimal("1.25"), Decimal(2)], "label": [1, 2]}).to_parquet(tmp_path / "a.parquet")
        assert read_any(tmp_path / "a.parquet").x.tolist() == [[1.25], [2]]

    @pytest.mark.parametrize(
        ("columns", "message"),
        [
            ({"a": [None, None], "label": [1, 2]}, "column 'a' of .* has 2 missing values, the first in row 1"),
            ({"a": [1, 2], "label": [[1], [1, 2]]}, r"'label' of .* has array\(\[1\]\) in row 1: labels must all be"),
            (
                {"a": [1, 2], "label": [Decimal(1), Decimal(2)]},
                r"'label' of .* has Decimal\('1'\) in row 1: labels must",
            ),
            ({"a": [1, 2], "label": ["x", ""]}, "'label' of .* has no value in row 2"),
            ({"a": [1, 2], "label": [1.0, 2.5]}, "'label' of .* has 2.5 in row 2"),
            ({"a": [1, 2], "label": [1.0, float("inf")]}, "'label' of .* has inf in row 2"),
            ({"a": ["1", "2"], "label": [1, 2]}, "column 'a' of .* is not numeric: row 1 has '1'"),
        ],
    )
    def test_what_is_wrong_in_parquet(self, tmp_path: Path, columns: dict[str, list[Any]], message: str) -> None:
        pq.write_table(pa.table(columns), tmp_path / "a.parquet")
        with pytest.raises(InputError, match=message):
            read_any(tmp_path / "a.parquet")

    def test_damaged_parquet_in_one_line(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["a", "a"]), path)
        with pytest.raises(InputError, match=r"has two columns 'a': give each a name of its own$"):
            read_any(path)
        pq.write_table(pa.table({"a": list(range(999)), "label": [f"{i % 9}" for i in range(999)]}), path)
        whole = path.read_bytes()
        for start in range(4, len(whole) - 60, len(whole) // 20):
            path.write_bytes(whole[:start] + b"\xff" * 60 + whole[start + 60 :])
            with contextlib.suppress(DataError, InputError):  # and nothing else
                read_any(path)
            path.write_bytes(whole[:start])
            with pytest.raises(DataError, match=r"is not a Parquet file that can be read: [^\n]*$"):
                read_any(path)

    def test_what_is_not_text_or_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(b"a,label\xff\xfe\n1,2\n")
        with pytest.raises(DataError, match="not a text file in UTF-8"):
            read_any(tmp_path / "a.csv")
        write(tmp_path / "a.parquet", "a,b")
        with pytest.raises(DataError, match="not a Parquet file"):
            read_any(tmp_path / "a.parquet")
        with pytest.raises(InputError, match="there is no file or folder"):
            read_any(tmp_path / "b.csv")
        with pytest.raises(InputError, match=r"of no known kind: give a .csv, .parquet or .npz file, or a folder"):
            read_any(write(tmp_path / "a.xls", ""))
        with pytest.raises(InputError, match="has no column 'when': it has 'a', 'label'"):
            read_any(write(tmp_path / "c.csv", "a,label\n1,2\n"), task_column="when")

    def test_a_missing_package_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path / "a.csv", "a,label\n1,2\n")
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(DataError, match=r"reading tables needs pandas: pip install 'relive\[tables\]'"):
            read_any(path)


class TestArrays:
    def test_arrays_and_pictures(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, X=np.arange(12, dtype=np.int32).reshape(3, 4), y=np.array([[1], [2], [1]]), t=["a", "b", "a"])
        samples = read_any(path, task_column="t")
        assert (samples.x.dtype.name, samples.x.shape, samples.image) == ("float64", (3, 4), None)
        assert samples.y is not None
        assert samples.y.tolist() == [1, 2, 1]
        assert samples.tasks == ("a", "b", "a")
        np.savez(path, pictures=np.zeros((3, 4, 5), np.uint8), answers=["x", "y", "x"])
        samples = read_any(path, x="pictures", y="answers")
        assert (samples.x.dtype.name, samples.x.shape, samples.image) == ("uint8", (3, 20), (4, 5))
        np.savez(path, X=np.zeros((3, 4, 5, 3), np.uint8))
        samples = read_any(path, needed=False)
        assert (samples.x.shape, samples.image, samples.y) == ((3, 60), (4, 5, 3), None)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"data": np.eye(2), "y": [0, 1]}, "has no array 'X': it has 'data', 'y'; call the samples 'X', or give"),
            ({"X": np.eye(2)}, "has no array 'y': it has 'X'; call the labels 'y', or give"),
            ({"X": np.eye(2), "y": [0, 1, 2]}, r"array 'y' of .* has shape \(3,\): it must have one value for 2"),
            (
                {"X": np.ones((2, 3, 4, 5)), "y": [0, 1]},
                r"is \(2, 3, 4, 5\): colours come last, X.transpose\(0, 2, 3, 1\)",
            ),
            ({"X": np.ones((2, 4, 5, 4)), "y": [0, 1]}, r"is \(2, 4, 5, 4\): a picture has no more than 3 channels"),
            ({"X": np.ones((2, 3, 4, 5, 1)), "y": [0, 1]}, r"is \(2, 3, 4, 5, 1\): give \(n, features\)"),
            ({"X": np.ones(2), "y": [0, 1]}, r"array 'X' of .* has shape \(2,\)"),
            ({"X": np.array([["a"], ["b"]]), "y": [0, 1]}, "array 'X' of .* has type <U1: features must be numbers"),
            ({"X": np.eye(2), "y": [b"a", b"b"]}, r"array 'y' of .* has type \|S1: labels must be numbers or strings"),
            ({"X": np.array([[1.0, np.nan]]), "y": [0]}, "missing or infinite, first in row 1, feature 2: fill"),
            ({"X": np.array([{}, {}]), "y": [0, 1]}, "array 'X' of .* holds Python objects, which are never loaded"),
            ({"X": np.eye(2), "y": np.array(["a", 1], object)}, r"array 'y' of .* store strings with y\.astype\(str\)"),
            ({"X": np.eye(2), "y": ["a", ""]}, "array 'y' of .* has no value in row 2"),
            ({"X": np.eye(2), "y": [0.5, 1.5]}, "array 'y' of .* has 0.5 in row 1"),
        ],
    )
    def test_what_is_wrong_is_said(self, tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
        np.savez(tmp_path / "a.npz", **arrays)
        with pytest.raises(ReliveError, match=message):
            read_any(tmp_path / "a.npz")

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut", b"not zipped", b"a,label\n1,2\n"])
    def test_what_is_no_npz(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "a.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"is damaged or not a NumPy file: (?!.*pickle)"):
            read_any(tmp_path / "a.npz")

    def test_a_single_array_is_no_npz(self, tmp_path: Path) -> None:
        with open(tmp_path / "a.npz", "wb") as file:
            np.save(file, np.eye(2))
        with pytest.raises(
            InputError, match=r"is a single array, as numpy.save writes it: .*savez\('a.npz', X=…, y=…\)"
        ):
            read_any(tmp_path / "a.npz")

    @pytest.mark.parametrize(
        ("name", "member", "compression", "message"),
        [
            ("X", b"text", zipfile.ZIP_STORED, "'X' in it is no array"),
            ("X.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, "), zipfile.ZIP_STORED, ""),
            ("X.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 999)}"), 0, "more memory"),
            ("X.npy", npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}"), zipfile.ZIP_LZMA, ""),
        ],
    )
    def test_odd_members(self, tmp_path: Path, name: str, member: bytes, compression: int, message: str) -> None:
        with zipfile.ZipFile(tmp_path / "a.npz", "w", compression) as file:
            file.writestr(name, member)
            file.writestr("y.npy", b"")
        with pytest.raises(DataError, match=f"is damaged or .*{message}"):
            read_any(tmp_path / "a.npz")

    @pytest.mark.parametrize(("at", "byte", "message"), [(8, 99, "compression"), (6, 1, "encrypted")])
    def test_unknown_compression_and_encryption(self, tmp_path: Path, at: int, byte: int, message: str) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, X=np.eye(2), y=[0, 1])
        content = bytearray(path.read_bytes())
        content[at] = byte
        content[content.index(b"PK\x01\x02") + at + 2] = byte
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"is damaged or not a NumPy file: .*{message}"):
            read_any(path)

    @pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_damage_in_every_compression(self, tmp_path: Path, compression: int) -> None:
        path = tmp_path / "a.npz"
        np.savez(path, X=np.eye(20), y=np.arange(20))
        with zipfile.ZipFile(path) as file:
            members = {name: file.read(name) for name in file.namelist()}
        with zipfile.ZipFile(path, "w", compression) as file:
            for name, content in members.items():
                file.writestr(name, content)
        assert read_any(path).x.shape == (20, 20)
        whole = path.read_bytes()
        for start in range(35, 110, 5):
            path.write_bytes(whole[:start] + b"\xff" * 9 + whole[start + 9 :])
            with pytest.raises(DataError, match="is damaged or not a NumPy file"):
                read_any(path)


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
            UserWarning, match=r"no pictures of a known kind, 3 in all, such as notes.txt: they are left"
        ):
            assert len(read_any(folder).x) == 4

    def test_pictures_below_a_class_are_refused(self, tmp_path: Path, folder: Path) -> None:
        with pytest.raises(InputError, match=r"pictures below the folders of its classes, such as pets/cat/0.png: put"):
            read_any(tmp_path)
        shutil.copytree(folder / "dog", folder / "cat" / "young" / "small")
        with pytest.raises(InputError, match=r"pictures below .*, such as cat/young/small/0.png: put them into the"):
            read_any(folder)

    def test_a_link_that_leads_nowhere_is_refused(self, folder: Path) -> None:
        (folder / "cat" / "q.png").symlink_to("gone.png")
        with pytest.raises(DataError, match=r"cat/q.png: it is a link to a file that is not there"):
            read_any(folder)

    def test_pixels_of_the_right_size_are_not_touched(self, folder: Path) -> None:
        samples = read_any(folder, image=(6, 4, 3))
        with Image.open(folder / "cat" / "1.png") as picture:
            assert samples.x[1].tolist() == np.asarray(picture).reshape(-1).tolist()

    def test_a_flat_folder_where_labels_are_not_needed(self, folder: Path) -> None:
        samples = read_any(folder / "cat", needed=False, image=(4, 4))
        assert (samples.y, samples.files) == (None, ("0.png", "1.png"))
        with pytest.raises(InputError, match=r"has pictures that are in no sub-folder, such as 0.png"):
            read_any(folder / "cat")

    def test_turned_as_the_camera_noted(self, tmp_path: Path) -> None:
        pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
        exif = Image.Exif()
        exif[0x0112] = 6  # to be turned clockwise
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
        """Tags of types that they cannot have, and notes that end too early: the picture is whole all the same."""
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
        glass[0, 0, 3] = 255  # black; the rest is not there
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
        assert "has pictures that cannot be read:\n  cat/0.png: " in message
        assert "cat/3.tif: its pixels are not bytes" in message
        assert "dog/2.jpg: it is not a picture of a known format" in message
        assert "1.png" not in message

    def test_nothing_there(self, tmp_path: Path, folder: Path) -> None:
        (folder / "cow").mkdir()
        with pytest.raises(InputError, match=r"has sub-folders without pictures: cow\. Known are \.png, \.jpg"):
            read_any(folder)
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="has neither pictures nor sub-folders with pictures"):
            read_any(tmp_path / "empty")
        with pytest.raises(InputError, match="is a folder of pictures: it has no column 'when'"):
            read_any(folder, task_column="when")
