"""A model over HTTP: ``relive serve``. Needs the extra ``serve`` (Starlette, uvicorn)."""
