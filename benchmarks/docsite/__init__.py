"""What the documentation site has beside its written pages: a page per method, equations, pictures, the examples."""
