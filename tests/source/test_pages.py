"""test_pages.py PROGRAM ROOT - the tutorial and the how-tos do what they say: every block of Python, C and shell of a page is executed
in order, in an empty folder. A block of C is saved under the name in its first line."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

program, root = (Path(argument).resolve() for argument in sys.argv[1:3])
pages = [root / 'docs/tutorial.md', root / 'docs/coming-from.md', *sorted((root / 'docs/howto').glob('*.md'))]


def steps(page):
    """One program for each run of blocks of the same language."""
    joined = []
    for language, text in re.findall(r'^ *```(python|c|sh)\n(.*?)^ *```$', page.read_text(), re.M | re.S):
        if joined and joined[-1][0] == language == 'python':
            joined[-1][1] += text
        else:
            joined.append([language, text])
    return joined


def run(language, text, folder):
    if language == 'c':
        name = re.match(r'/\* (\w+\.c) \*/', text).group(1)
        Path(folder, name).write_text(text)
        return
    command = [sys.executable, '-c', text] if language == 'python' else ['sh', '-e', '-c', text]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemError(done.stdout[-3000:])


def execute(page):
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(root / 'include', Path(folder, 'include'))
        for language, text in steps(page):
            run(language, text, folder)


environment = dict(os.environ, PATH=f'{program.parent}:{os.environ["PATH"]}')
failed = 0
for number, page in enumerate(pages, 1):
    try:
        execute(page)
        print(f'ok {number} - the blocks of {page.relative_to(root)}', flush=True)
    except (SystemError, AttributeError) as error:
        failed += 1
        print(f'not ok {number} - the blocks of {page.relative_to(root)}', flush=True)
        print('# ' + str(error).replace('\n', '\n# '))
print(f'1..{len(pages)}')
sys.exit(failed > 0)
