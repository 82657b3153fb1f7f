"""Sphinx directives: `manual-page` for a manual page in mdoc, and `c-header` for a public C header in its own order.

A section begins at a line of dashes. A comment documents the declarations that follow it without an empty line. Functions
become entries of the index; types and macros keep their source with its comments. A name of the library in a comment is a link.
"""

import re
import subprocess
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

root = Path(__file__).resolve().parents[2]
SECTION = re.compile(r'/\* -{20,} (.*?)\s*(?:\* )?\*/$', re.S)
NAME = re.compile(r'\b(rws_[a-z0-9_]+|RWS_[A-Z0-9_]+)\b(?:\(\))?')
ATTRIBUTE = re.compile(r'\s*(?:__attribute__\(\(.*\)\)|RWS_MUST_CHECK)(?=;)')


def blocks(source):
    """Splits a header at its empty lines outside of comments and braces."""
    block, depth, comment = [], 0, False
    for line in source.split('\n'):
        if not line.strip() and not depth and not comment:
            if block:
                yield '\n'.join(block)
            block = []
            continue
        block.append(line)
        for mark in re.findall(r'/\*|\*/|//.*|[{}]|"(?:\\.|[^"\\])*"', line):
            if comment:
                comment = mark != '*/'
            elif mark == '/*':
                comment = True
            else:
                depth += {'{': 1, '}': -1}.get(mark, 0)
    if block:
        yield '\n'.join(block)


def divide(block):
    """The comment at the top of a block, and the declarations below it."""
    match = re.match(r'/\*.*?\*/[ ]*(\n|$)', block, re.S)
    return (match.group().strip(), block[match.end():]) if match else ('', block)


def declarations(code):
    """Single declarations: a macro with its continuation lines, or what ends with a semicolon outside of braces."""
    one, depth = [], 0
    for line in code.split('\n'):
        if not one and not line.strip():
            continue
        one.append(line)
        if one[0].startswith('#'):
            done = not line.endswith('\\')
        else:
            bare = re.sub(r'/\*.*?(\*/|$)|//.*', '', line)
            depth += bare.count('{') - bare.count('}')
            done = depth == 0 and (';' in bare or bare == '}') and line.count('/*') == line.count('*/')
        if done:
            yield '\n'.join(one)
            one = []
    if one:
        yield '\n'.join(one)


def function(declaration):
    """The signature of a function in one line and the comment behind it; None for anything else."""
    inline = re.match(r'static inline (.*?\))\n\{', declaration, re.S)
    declaration = inline.group(1) + ';' if inline else ATTRIBUTE.sub('', declaration)
    match = re.match(r'((?:[\w*]+[\s*]+)+(rws_\w+)\(.*\))\s*;\s*(?:/\*(.*)\*/)?\s*$', declaration, re.S)
    if not match or declaration.startswith(('typedef', '#')):
        return None
    return match.group(2), ' '.join(match.group(1).split()), ' '.join((match.group(3) or '').split())


def names_of(code):
    """The name that a declaration of another kind introduces."""
    for pattern in (r'#define (\w+)', r'\}\s*(rws_\w+);', r'\(\*?(rws_\w+)\)\(', r'typedef .*?\b(rws_\w+);',
                    r'typedef .*?\b(rws_\w+)\(', r'\b(rws_\w+)(?:\[\])?;'):
        found = re.findall(pattern, code, re.S if pattern.startswith('typedef') else 0)
        if found:
            return found[-1]
    return None


class Writer:
    """reStructuredText of a header."""

    def __init__(self, kinds, enums):
        self.kinds = kinds  # name: role of the C domain
        self.enums = enums  # name of a constant: its type
        self.lines = []
        self.declared = set()

    def add(self, *lines, indent=0):
        self.lines += [' ' * indent + line if line else '' for line in lines]

    def prose(self, text):
        return ''.join(part and (f'``{part[1:-1]}``' if part[0] == '`' else self.words(part))
                       for part in re.split(r'(`[^`]+`)', text))

    def words(self, text):
        text = re.sub(r'([\\*`|])', r'\\\1', text)
        text = re.sub(r'_(?=\W|$)', r'\\_', text)
        return NAME.sub(self.link, text)

    def link(self, match):
        name = match.group(1)
        if name in self.kinds:
            return f':c:{self.kinds[name]}:`{name}`\\ '
        return f':c:type:`{name} <{self.enums[name]}>`\\ ' if name in self.enums else match.group()

    def comment(self, text, indent=0):
        body = [re.sub(r'^ \* ?', '', line).rstrip() for line in text[2:-2].strip().split('\n')]
        for part in re.split(r'\n\s*\n(?!    )', '\n'.join(body)):
            self.part(part.split('\n'), indent)

    def part(self, lines, indent):
        """A paragraph; items of a list begin with a dash; what is indented by four is code."""
        was = None
        for line in lines:
            kind = 'item' if re.match(r' {1,3}- ', line) else 'code' if line.startswith('    ') and was != 'item' else 'text'
            if kind == 'text' and was == 'item' and line.startswith('   '):
                kind = 'more'
            if kind != was and kind != 'more' or kind == 'item':
                self.add('')
                if kind == 'code':
                    self.add('.. code-block:: c', '   :force:', '', indent=indent)
            if kind == 'item':
                self.add('* ' + self.prose(line.strip()[2:]), indent=indent)
            elif kind == 'more':
                self.add('  ' + self.prose(line.strip()), indent=indent)
            elif kind == 'code':
                self.add(line[4:], indent=indent + 3)
            else:
                self.add(self.prose(line.strip()), indent=indent)
            was = 'item' if kind == 'more' else kind
        self.add('')

    def section(self, title):
        title = ' '.join(title.split())
        self.add('', title[0].upper() + title[1:], '~' * len(title), '')

    def functions(self, group, comment):
        self.add('', '.. c:function:: ' + group[0][1])
        self.add(*[signature for _, signature, _ in group[1:]], indent=16)
        self.add('')
        if comment:
            self.comment(comment, 3)
        for name, _, note in group:
            if note:
                self.add(f'* ``{name}``: {self.prose(note)}', indent=3)
        self.add('')

    def source(self, codes, comment):
        for name in filter(None, map(names_of, codes)):
            if name in self.declared:
                continue  # a macro with another definition for another compiler
            self.declared.add(name)
            self.add(f'.. c:{self.kinds[name]}:: {name}', '   :no-typesetting:', '')
        if comment:
            self.comment(comment)
        self.add('.. code-block:: c', '')
        self.add(*'\n'.join(codes).split('\n'), indent=3)
        self.add('')

    def block(self, block):
        section = SECTION.match(block)
        if section:
            return self.section(section.group(1))
        comment, code = divide(block)
        functions, codes = [], []
        for one in declarations(code):
            found = function(one)
            if found:
                functions.append(found)
            elif names_of(one):
                codes.append(one)
        if codes:
            self.source(codes, comment)
        if functions:
            self.functions(functions, '' if codes else comment)
        if comment and not codes and not functions:
            self.comment(comment)
        return None


def kinds_of(source):
    """The role of every name that a header declares."""
    kinds = {}
    for block in blocks(source):
        for one in declarations(divide(block)[1]):
            found = function(one)
            name = found[0] if found else names_of(one)
            if name:
                kinds[name] = 'func' if found else 'macro' if one.startswith('#') else 'type'
    return kinds


def enums_of(source):
    """The type of every constant of an enum."""
    return {name: match.group(2) for match in re.finditer(r'typedef enum \{(.*?)\}\s*(rws_\w+);', source, re.S)
            for name in re.findall(r'\b(RWS_\w+)\b', re.sub(r'/\*.*?\*/', '', match.group(1), flags=re.S))}


def body(path):
    """What a reader of the documentation needs: without guards and switches of the compiler."""
    text = path.read_text()
    text = re.sub(r'^#ifdef __cplusplus\n(?:extern "C" \{|\})\n#endif\n', '', text, flags=re.M)
    return re.sub(r'^#(?:if|endif|ifdef|ifndef|else|elif|pragma|include).*\n|^#define (?:\w+_H|RWS_MUST_CHECK.*)\n', '', text, flags=re.M)


class CHeader(SphinxDirective):
    required_arguments = 1

    def run(self):
        folder = Path(self.config.c_header_folder)
        self.env.note_dependency(str(folder / self.arguments[0]))
        kinds, enums = {}, {}
        for path in folder.glob('*.h'):
            kinds.update(kinds_of(body(path)))
            enums.update(enums_of(body(path)))
        writer = Writer(kinds, enums)
        for block in blocks(body(folder / self.arguments[0])):
            writer.block(block)
        return self.parse_text_to_nodes('\n'.join(writer.lines), allow_section_headings=True)


class ManualPage(SphinxDirective):
    required_arguments = 1

    def run(self):
        page = subprocess.run(['mandoc', '-T', 'markdown', self.arguments[0]], check=True, capture_output=True, text=True).stdout
        body = page[page.index('# '):page.rindex('\n\n')]
        return self.parse_text_to_nodes(re.sub(r'^#', '##', body, flags=re.M), allow_section_headings=True)


class ValueFunctions(SphinxDirective):
    """Every function of the Python package that takes values: those that the extension defines."""

    def run(self):
        import rws

        names = [name for name in sorted(vars(rws)) if type(getattr(rws, name)) is type(len) and name not in ('rank', 'n_ranks')]
        text = '\n'.join(f'.. autofunction:: rws.{name}' for name in names)
        return self.parse_text_to_nodes(f'```{{eval-rst}}\n{text}\n```')


def plain_docstring(app, what, name, thing, options, lines):
    """Docstrings are plain text: `code`, and arguments as indented lines that begin with their names and a colon."""
    out = []
    for line in lines:
        line = re.sub(r'([*|])', r'\\\1', re.sub(r'`+([^`]+)`+', r'``\1``', line)) if '``' not in line else line
        argument = re.match(r'([a-z]\w*(?:, (?:\w+|…))*): (?=\S)', line)
        if argument and out and (not out[-1] or out[-1].startswith((' ', '* '))):
            line = f'* ``{argument.group(1)}``: {line[argument.end():]}'
        elif line.startswith('    ') and out and out[-1].startswith(('  ', '* ')):
            line = '  ' + line.strip()
        elif out and out[-1].startswith(('* ', '  ')):
            out.append('')
        out.append(line)
    lines[:] = out


class FilesOutside(SphinxPostTransform):
    """Links to files of the repository that are no pages: the files are copied beside the pages. Links to folders become text."""

    default_priority = 8  # before MyST complains

    def run(self):
        for node in list(self.document.findall(addnodes.pending_xref)):
            path = self.find(node)
            if path:
                node.replace_self(node.children if path.is_dir() else self.copy(node, path))

    def find(self, node):
        if node.get('refdomain') not in ('doc', None) or node['reftarget'] in self.env.all_docs:
            return None
        page = self.env.docname
        folders = [(Path(self.app.srcdir) / page).parent, root] if not node['reftarget'].startswith('/') else [Path('/')]
        for name in (node['reftarget'], node['reftarget'] + '.md'):
            for folder in folders:
                path = (folder / name.lstrip('/')).resolve()
                if path.exists() and path.is_relative_to(root):
                    return path
        return None

    def copy(self, node, path):
        place = '_files/' + str(path.relative_to(root))
        copy = Path(self.app.outdir, place)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
        return nodes.reference('', '', *node.children, refuri='../' * self.env.docname.count('/') + place)


def setup(app):
    app.add_config_value('c_header_folder', '', 'env')
    app.add_directive('c-header', CHeader)
    app.add_directive('manual-page', ManualPage)
    app.add_directive('value-functions', ValueFunctions)
    app.connect('autodoc-process-docstring', plain_docstring)
    app.add_post_transform(FilesOutside)
    return {'env_version': 1, 'parallel_read_safe': True}
