"""Sphinx configuration of the documentation; `make docs` builds it."""

import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

project = 'rws'
release = re.search(r'RWS_VERSION_STRING "(.*)"', (root / 'include/rws.h').read_text()).group(1)
extensions = ['myst_parser', 'sphinx_design', 'sphinx_copybutton', 'sphinx.ext.autodoc', 'headers']
exclude_patterns = ['README.md', 'site']
myst_enable_extensions = ['colon_fence', 'dollarmath']
myst_heading_anchors = 4
c_header_folder = str(root / 'include')
html_theme = 'furo'
html_title = f'rws {release}'
