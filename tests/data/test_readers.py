"""Reading the user's tables: CSV and Parquet, and everything that can be wrong with them."""

from __future__ import annotations

import contextlib
import gzip
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from relive._util.errors import DataError, InputError, ReliveError
from relive.data.readers.formats import read_any


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


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

    def test_a_misspelt_label_is_told_from_the_nearest_of_many_columns(self, tmp_path: Path) -> None:
        names = [*(f"pixel {i}" for i in range(64)), "number"]
        path = write(tmp_path / "a.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
        with pytest.raises(InputError, match=r"no column 'numbr': did you mean 'number'\? It has 'pixel 0'") as refused:
            read_any(path, label="numbr")
        assert str(refused.value).endswith("'pixel 63', 'number' (65 in all)")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "a,species\n1,x\n",
                "has no column 'label': it has 'a', 'species'; call the label column 'label', or pass its name to",
            ),
            ("a,b,label\n1,,x\n2,NA,x\n3,4,x\n", "column 'b' of .* has 2 missing values, the first in row 1: fill"),
            ("a,b,label\n1,2,x\n2,red,x\n", "column 'b' of .* is not numeric: row 2 has 'red'. Turn it into numbers"),
            (f"a,label\n1,x\n{'9' * 400},x\n", "column 'a' of .* is not numeric: row 2 has 9999"),
            ("a,label\n1,x\n2,\n", "column 'label' of .* has a missing value in row 2"),
            ("a,label\n1,x\ninf,y\n", "column 'a' of .* has an infinite value in row 2"),
            ("a,a,label\n1,2,x\n", "two columns named 'a'"),
            (",a,label\n0,2,x\n", r"column 1 of .* has no name. If it only numbers the rows, leave it out"),
            ("a;label\n2;x\n", "is separated by ';': separate its columns with commas"),
            ("a,label\n1,x,7\n2,y,8\n", "row 1 of .* has 3 values for 2 columns: put values that contain a comma in"),
            ('a,label\n1,"x,\ny"\n\n2,y,8\n', "row 2 of .* has 3 values for 2 columns"),
            ("a,b,label\n1,True,x\n2,,x\n3,False,x\n", "'b' of .* has 1 missing value, in row 2: fill it in or leave"),
            ("a,label\n1,0.5\n2,1.5\n", "'label' of .* has 0.5 in row 1: labels are classes, .* give them names"),
            ('a,label\n1,x\n2,"  "\n', "column 'label' of .* has a missing value in row 2"),
            ("\n\n", "is empty"),
            ("a,b,label\n1,x\n", "column 'label' of .* has a missing value in row 1"),
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
        with pytest.raises(InputError, match=r"column 'when' of .* has a missing value in row 2"):
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
            with pytest.raises(InputError, match=r"'(label|y)' of .* has a missing value in row 1"):
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
            with pytest.raises(DataError, match=r"is not a readable CSV file: [^\n]*$"):
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
            ({"a": [1, 2], "label": [[1], [1, 2]]}, r"'label' of .* has array\(\[1\]\) in row 1: labels must be all"),
            (
                {"a": [1, 2], "label": [Decimal(1), Decimal(2)]},
                r"'label' of .* has Decimal\('1'\) in row 1: labels must",
            ),
            ({"a": [1, 2], "label": ["x", ""]}, "'label' of .* has a missing value in row 2"),
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
        with pytest.raises(InputError, match=r"has two columns named 'a': give each its own name$"):
            read_any(path)
        pq.write_table(pa.table({"a": list(range(999)), "label": [f"{i % 9}" for i in range(999)]}), path)
        whole = path.read_bytes()
        for start in range(4, len(whole) - 60, len(whole) // 20):
            path.write_bytes(whole[:start] + b"\xff" * 60 + whole[start + 60 :])
            with contextlib.suppress(DataError, InputError):  # and nothing else
                read_any(path)
            path.write_bytes(whole[:start])
            with pytest.raises(DataError, match=r"is not a readable Parquet file: [^\n]*$"):
                read_any(path)

    def test_what_is_not_text_or_not_there(self, tmp_path: Path) -> None:
        (tmp_path / "a.csv").write_bytes(b"a,label\xff\xfe\n1,2\n")
        with pytest.raises(DataError, match="not a UTF-8 text file"):
            read_any(tmp_path / "a.csv")
        write(tmp_path / "a.parquet", "a,b")
        with pytest.raises(DataError, match="not a readable Parquet file"):
            read_any(tmp_path / "a.parquet")
        with pytest.raises(InputError, match="there is no file or folder"):
            read_any(tmp_path / "b.csv")
        with pytest.raises(
            InputError, match=r"has an unsupported format: give a .csv, .parquet or .npz file, or a folder"
        ):
            read_any(write(tmp_path / "a.xls", ""))
        with pytest.raises(InputError, match="has no column 'when': it has 'a', 'label'"):
            read_any(write(tmp_path / "c.csv", "a,label\n1,2\n"), task_column="when")

    def test_a_missing_package_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = write(tmp_path / "a.csv", "a,label\n1,2\n")
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(DataError, match=r"reading tables needs pandas: pip install 'relive\[tables\]'"):
            read_any(path)
