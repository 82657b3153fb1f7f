"""Sphinx extension: a page with blocks of Python is also a Jupyter notebook, beside the page and linked at its end."""

import json
import re
from pathlib import Path


def cells(text):
    """The parts of a page in Markdown: blocks of Python are code, everything between them is text."""
    for part in re.split(r'^(```python\n.*?^```)$', text, flags=re.M | re.S):
        code = part.startswith('```python\n')
        lines = (part[len('```python\n'):-len('```')] if code else part).strip('\n').splitlines(keepends=True)
        if lines:
            yield {'cell_type': 'code' if code else 'markdown', 'metadata': {}, 'source': lines,
                   **({'execution_count': None, 'outputs': []} if code else {})}


def add_notebook(app, page, template, context, doctree):
    source = Path(app.srcdir, page + '.md')
    if not page.startswith(app.config.notebook_pages) or not source.exists() or '\n```python\n' not in source.read_text():
        return
    kernel = {'kernelspec': {'name': 'python3', 'display_name': 'Python 3', 'language': 'python'}}
    notebook = {'cells': list(cells(source.read_text())), 'metadata': kernel, 'nbformat': 4, 'nbformat_minor': 4}
    file = Path(app.outdir, page + '.ipynb')
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(notebook, indent=1, ensure_ascii=False))
    context['body'] += f'<p><a href="{file.name}" download>This page as a Jupyter notebook</a></p>'


def setup(app):
    app.add_config_value('notebook_pages', (), 'html')
    app.connect('html-page-context', add_notebook)
    return {'parallel_write_safe': True}
