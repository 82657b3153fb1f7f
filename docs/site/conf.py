"""Sphinx configuration of the documentation; `make docs` builds it from the folder of the repository."""

import os
import re
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(root / 'build/python')]

project = 'rws'
release = re.search(r'RWS_VERSION_STRING "(.*)"', (root / 'include/rws.h').read_text()).group(1)
extensions = ['myst_parser', 'sphinx_design', 'sphinx_copybutton', 'sphinx.ext.autodoc', 'sphinx-mathjax-offline', 'rws_reference', 'notebooks']
exclude_patterns = ['README.md', 'site', 'reproduction/*/claims.md']
suppress_warnings = ['toc.not_included', 'misc.highlighting_failure']
myst_enable_extensions = ['colon_fence', 'dollarmath']
myst_heading_anchors = 4
c_header_folder = str(root / 'include')
smartquotes = False
autodoc_typehints = 'none'
autodoc_member_order = 'bysource'
html_theme = 'furo'
html_title = f'rws {release}'
html_static_path = ['static']
html_css_files = ['wide.css']
html_show_copyright = False
html_sidebars = {'**': ['sidebar/brand.html', 'versions.html', 'sidebar/search.html', 'sidebar/scroll-start.html',
                        'sidebar/navigation.html', 'sidebar/scroll-end.html']}
templates_path = ['templates']
html_context = {'versions': sorted({release, *os.environ.get('RWS_DOCS_VERSIONS', '').split()}, reverse=True)}
html_show_search_summary = False  # a page from the disk may not read others
notebook_pages = ('tutorial', 'howto/')
