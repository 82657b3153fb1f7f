"""test_site.py FOLDER - the site that `make docs` has built: every link inside it leads to a page and a place in it; in a browser, opened
from the disk, pages have no error, the search finds, and the dark theme can be chosen."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

sys.path.insert(0, str(Path(__file__).parents[1] / 'apps/serve'))
from browser import Browser, missing  # noqa: E402

root = max(Path(sys.argv[1]).resolve().glob('[0-9]*'))
count = failed = 0


def report(good, name, detail=''):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        print('# ' + str(detail)[:2000].replace('\n', '\n# '))


class Page(HTMLParser):
    """The links of a page and the places in it."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key in ('href', 'src') and value:
                self.links.append(value)
            elif key in ('id', 'name') and value:
                self.places.add(value)


pages = {path: Page(path.read_text()) for path in root.rglob('*.html') if '_files' not in path.parts}
wrong = []
for path, page in pages.items():
    for link in page.links:
        url = urlsplit(link)
        if url.scheme or url.netloc or link.startswith('../') and (path.parent / url.path).resolve().parts[:len(root.parts)] != root.parts:
            continue
        target = (path.parent / unquote(url.path)).resolve() if url.path else path
        if not target.exists():
            wrong.append(f'{path.relative_to(root)}: {link}')
        elif url.fragment and target in pages and url.fragment not in pages[target].places:
            wrong.append(f'{path.relative_to(root)}: {link}')
report(not wrong, f'{sum(len(page.links) for page in pages.values())} links of {len(pages)} pages', '\n'.join(wrong))

if missing():
    print(f'# not opened in a browser: {missing()}')
else:
    browser = Browser()
    for name in ('index', 'tutorial', 'estimators', 'reference/cli', 'reference/python', 'reference/rws_h', 'howto/diagnose'):
        browser.go((root / f'{name}.html').as_uri())
        browser.wait("document.readyState === 'complete'")
        report(browser.js('return document.querySelector("h1").textContent.length > 2'), f'{name} opens from the disk')
    browser.go((root / 'estimators.html').as_uri())
    formulas = browser.wait("document.querySelectorAll('mjx-container').length", what='formulas')
    report(formulas > 10, 'formulas are set without a network')
    browser.go((root / 'search.html').as_uri() + '?q=rws_setup_series')
    found = browser.wait("document.querySelectorAll('#search-results li').length", what='results of the search')
    report(found > 0, 'the search finds a function')
    dark = browser.js('''document.querySelector('.theme-toggle').click(); document.querySelector('.theme-toggle').click();
                         return document.body.dataset.theme''')
    report(dark in ('dark', 'light'), 'the theme can be chosen', dark)
    wide = browser.js('return document.documentElement.scrollWidth <= window.innerWidth')
    report(wide, 'nothing is wider than the window')
    elsewhere = [url for url in browser.addresses() if not url.startswith(('file:', 'data:', 'blob:', 'chrome:'))]
    report(not elsewhere, 'no request leaves the disk', elsewhere)
    errors = [entry['message'] for entry in browser.logs() if entry['level'] == 'SEVERE']
    report(not errors, 'no error on the console', errors)
    browser.close()
print(f'1..{count}')
sys.exit(failed > 0)
