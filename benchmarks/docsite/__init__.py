"""What the documentation site has besides its written pages: a page per method, equations, pictures, the examples."""
