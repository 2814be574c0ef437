"""The server's interface as OpenAPI, and as a plain HTML page that needs no network."""

from __future__ import annotations

import html
import json
from importlib.metadata import version
from typing import Any

ERRORS = {
    "400": "The request is invalid; the message says why.",
    "413": "The body is too large.",
    "415": "The body is neither JSON nor CSV.",
}


def openapi(samples: int, body: int, token: bool) -> dict[str, Any]:
    """Return a description of all addresses, OpenAPI 3.1."""
    question = {
        "type": "object",
        "required": ["samples"],
        "additionalProperties": False,
        "properties": {
            "samples": {
                "type": "array",
                "maxItems": samples,
                "items": {"type": "array", "items": {"type": "number"}},
                "description": "One row of features per sample.",
            },
            "proba": {"type": "boolean", "default": False, "description": "Also the probability of every class."},
            "reject": {
                "type": "number",
                "description": "Answer unknown for samples less typical than all but this share of those learned.",
            },
            "task": {"description": "In Task-IL: the task's name, or a list with one per sample."},
        },
        "example": {"samples": [[0.1, 0.2]], "proba": True},
    }
    found = {
        "type": "object",
        "properties": {
            "labels": {"type": "array", "description": "The most likely class of each sample, or unknown."},
            "classes": {"type": "array", "description": "With proba: the classes of the columns."},
            "probabilities": {"type": "array", "description": "With proba: one row per sample."},
            "version": {"type": "integer", "description": "How many versions of the file have been loaded."},
        },
    }
    predict = {
        "summary": "The class of every sample",
        "description": f"At most {samples:,} samples and {body:,} bytes. CSV has a header line, and passes the "
        "rest in the address: /predict?proba=1, reject=0.05, task=NAME, task_column=COLUMN.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": question}, "text/csv": {"schema": {"type": "string"}}},
        },
        "responses": _responses("The answers.", found) | {code: {"description": why} for code, why in ERRORS.items()},
    }
    paths: dict[str, Any] = {"/predict": {"post": predict}}
    for path, summary in (
        ("/model", "What the model has learned, and when: as in relive inspect --json"),
        ("/healthz", "Whether the server is up; needs no token"),
        ("/openapi.json", "This description"),
        ("/docs", "This description as a page"),
    ):
        paths[path] = {"get": {"summary": summary, "responses": _responses("It is there.", {})}}
    described: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "relive", "version": version("relive"), "description": "One model that keeps learning."},
        "paths": paths,
    }
    if token:
        described["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        described["security"] = [{"token": []}]
    return described


def _responses(what: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"200": {"description": what, "content": {"application/json": {"schema": schema}}}}


def page(described: dict[str, Any]) -> str:
    """Return a description as HTML."""
    parts = []
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            parts.append(f"<h2><code>{method.upper()} {path}</code></h2><p>{html.escape(said['summary'])}.</p>")
            if "description" in said:
                parts.append(f"<p>{html.escape(said['description'])}</p>")
            if "requestBody" in said:
                schema = said["requestBody"]["content"]["application/json"]["schema"]
                answers = said["responses"]["200"]["content"]["application/json"]["schema"]
                parts.append(f"<h3>JSON</h3>{_fields(schema)}<h3>Answer</h3>{_fields(answers)}")
                example = json.dumps(schema["example"])
                asked = f"curl -H 'Content-Type: application/json' -d '{example}' http://127.0.0.1:8000{path}"
                parts.append(f"<pre>{html.escape(asked)}</pre>")
    note = "<p>Every request needs <code>Authorization: Bearer TOKEN</code>.</p>" if "security" in described else ""
    return PAGE.format(note=note, body="".join(parts))


def _fields(schema: dict[str, Any]) -> str:
    cells = (
        (f"<code>{name}</code>", said.get("type", ""), html.escape(said["description"]))
        for name, said in schema["properties"].items()
    )
    return f"<table>{''.join(f'<tr><td>{a}</td><td>{b}</td><td>{c}</td></tr>' for a, b, c in cells)}</table>"


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>relive serve</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem}}
td{{padding:.2rem .8rem .2rem 0;vertical-align:top}}pre{{background:#f2f2f2;padding:.8rem;overflow:auto}}
h2{{margin-top:2rem;font-size:1.15rem}}h3{{font-size:1rem;margin-bottom:0}}</style>
<h1>relive serve</h1>{note}{body}<p>As a file for programs: <a href="/openapi.json">/openapi.json</a>.</p></html>
"""
