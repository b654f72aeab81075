#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""Proves what docs/design.md promises about the sources: who includes whom, and what proto links to.

Each check prints what it looked at, and fails as well when it found nothing to look at.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

SKIP = 77  # meson's exit code for a test that could not be run here

# What each module may include besides its own headers and libc's: modules by name, headers of
# libraries by pattern. This is the table of docs/design.md.
RTE = r'(rte|cmdline)_\w+\.h|cmdline\w*\.h'
RDMA = r'rdma/.+'
CRYPTO = r'openssl/.+'
RULES = {
    'include/internal': {'modules': set(), 'libs': []},
    'include/pmf': {'modules': set(), 'libs': [RDMA]},
    'src/proto': {'modules': {'include/internal'}, 'libs': []},
    'src/seal': {'modules': {'include/internal', 'src/proto'}, 'libs': [CRYPTO]},
    'src/pmd_glue': {'modules': {'include/internal'}, 'libs': [RTE]},
    'src/completion': {'modules': {'include/internal', 'include/pmf'},
                       'libs': [RDMA, r'rte_ring\w*\.h']},
    'src/msg': {'modules': {'include/internal', 'include/pmf', 'src/proto', 'src/seal', 'src/pmd_glue',
                            'src/completion'}, 'libs': [RDMA, RTE]},
    'src/fabric': {'modules': {'include/internal', 'include/pmf', 'src/proto', 'src/seal',
                               'src/pmd_glue', 'src/completion', 'src/msg'}, 'libs': [RDMA, RTE]},
    # Alone of the programs it does what the provider does, with the same code.
    'app/wire': {'modules': {'app', 'include/internal', 'src/pmd_glue/fault.h'}, 'libs': [RTE]},
    'app': {'modules': {'include/pmf'}, 'libs': [RDMA, RTE]},
}

# proto has no clock, no allocation, no output: it gets the headers of plain data only. assert.h is
# for static_assert; a real assert shows among the symbols.
PROTO_LIBC = {'stdint.h', 'stddef.h', 'stdbool.h', 'string.h', 'limits.h', 'errno.h', 'inttypes.h',
              'stdalign.h', 'stdatomic.h', 'endian.h', 'byteswap.h', 'sys/types.h', 'sys/uio.h',
              'assert.h'}
LIBRARY_HEADER = re.compile(r'^(rte_|cmdline|rdma/|infiniband/|openssl/|ethdev_|bus_\w+driver|CUnit/)')

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)

# Undefined symbols that proto may have: the four, their fortified forms, and what compilers emit
# by themselves (stack protector, 128-bit division, bit counting, coverage).
PROTO_SYMBOLS = re.compile(r'^(__)?mem(cpy|move|set|cmp)(_chk)?$|^__stack_chk_fail(_local)?$'
                           r'|^_GLOBAL_OFFSET_TABLE_$|^__u?(div|mod|divmod)[dt]i[34]$'
                           r'|^__(popcount|clz|ctz)[dt]i2$|^__gcov_\w+$')


def sources(root, tops, endings):
    """Paths below root, in order, of the files that end so; build directories are no source."""
    for top in tops:
        for folder, dirs, files in os.walk(os.path.join(root, top)):
            dirs[:] = sorted(d for d in dirs if not d.startswith(('.', '__', 'build')))
            for name in sorted(files):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(folder, name), root)


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8', errors='replace') as file:
        return file.read()


def module_of(path):
    for module in RULES:
        if path.startswith(module + '/'):
            return module
    return None


def resolve(root, path, name):
    """The file of the tree that an include names, as the build's include directories find it."""
    for base in (os.path.dirname(path), 'src', 'include/internal', 'include'):
        candidate = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def include_error(root, path, quote, name):
    """Why `path` may not include `name`, or None."""
    module = module_of(path)
    rule = RULES[module]
    # An angle bracket reaches the tree's own public headers only as <pmf/...>.
    target = resolve(root, path, name) if quote == '"' or name.startswith('pmf/') else None
    if target:
        owner = module_of(target)
        if owner == module or {owner, target} & rule['modules']:
            return None
        return f'{module} may not include {target}'
    if any(re.fullmatch(lib, name) for lib in rule['libs']):
        return None
    if LIBRARY_HEADER.match(name):
        return f'{module} may not include <{name}>'
    if quote == '"':
        return f'"{name}" is not found where the build looks'
    if module == 'src/proto' and name not in PROTO_LIBC:
        return f'src/proto may not include <{name}>: plain data headers only'
    return None


def check_includes(root):
    """Every #include of every module against the table."""
    count, errors = 0, []
    for path in sources(root, ('include', 'src', 'app'), ('.c', '.h')):
        count += 1
        if module_of(path) is None:
            errors.append(f'{path}: belongs to no module of docs/design.md')
            continue
        text = COMMENT.sub(lambda m: '\n' * m.group().count('\n'), read(root, path))
        for match in INCLUDE.finditer(text):
            why = include_error(root, path, *match.groups())
            if why:
                line = text.count('\n', 0, match.start(1)) + 1
                errors.append(f'{path}:{line}: {why}')
    return count, errors


def check_sizes(root):
    """No source file beyond 800 lines."""
    count, errors = 0, []
    for path in sources(root, ('src', 'include', 'app'), ('.c', '.h')):
        count += 1
        lines = read(root, path).count('\n')
        if lines > 800:
            errors.append(f'{path}: {lines} lines, at most 800')
    return count, errors


def check_spdx(root):
    """The licence and the copyright in the first lines of every source file."""
    count, errors = 0, []
    tops = ('src', 'include', 'app', 'test', 'usertools', 'config', 'dts', 'docs')
    endings = ('.c', '.h', '.py', '.sh', '.env', 'meson.build', '.7', '.7.in')
    paths = list(sources(root, tops, endings))
    # Scripts have no ending; what starts with #! is one.
    for path in sources(root, ('usertools', 'test', 'dts'), ('',)):
        if path not in paths and '.' not in os.path.basename(path):
            if read(root, path).startswith('#!'):
                paths.append(path)
    for path in paths:
        count += 1
        head = read(root, path).split('\n')[:4]
        if not any('SPDX-License-Identifier: BSD-3-Clause' in line for line in head):
            errors.append(f'{path}: no SPDX line at its head')
        elif not any('Copyright (c) 2026 The pmf authors' in line for line in head):
            errors.append(f'{path}: no copyright line at its head')
    return count, errors


def archive_symbols(archive):
    """Symbols that the archive needs from elsewhere, with the member that needs each."""
    text = subprocess.run(['nm', '-A', archive], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    defined, needed = set(), {}
    for line in text.splitlines():
        where, _, rest = line.rpartition(': ') if ': ' in line else line.rpartition(':')
        words = rest.split()
        if len(words) >= 2 and words[-2] == 'U':
            needed.setdefault(words[-1], where)
        elif len(words) >= 2:
            defined.add(words[-1])
    return {name: where for name, where in needed.items() if name not in defined}


def check_symbols(archive):
    """proto links with nothing: memcpy, memmove, memset, memcmp and the compiler's own."""
    members = subprocess.run(['ar', 't', archive], check=True, text=True,
                             stdout=subprocess.PIPE).stdout.split()
    errors = [f'{where}: needs {name}' for name, where in sorted(archive_symbols(archive).items())
              if not PROTO_SYMBOLS.match(name)]
    return len(members), errors


def check_format(root):
    """The layout that .clang-format describes, by the version it was written for."""
    for tool in ('clang-format-14', 'clang-format'):
        found = shutil.which(tool)
        if found and ' 14.' in subprocess.run([found, '--version'], text=True,
                                              stdout=subprocess.PIPE).stdout:
            break
    else:
        print('clang-format 14 is not here; other versions lay out some lines differently')
        sys.exit(SKIP)
    paths = list(sources(root, ('src', 'include', 'app', 'test'), ('.c', '.h')))
    if not paths:
        return 0, []
    run = subprocess.run([found, '--dry-run', '-Werror', '--ferror-limit=1', *paths], text=True,
                         cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    errors = [line for line in run.stdout.splitlines() if 'error:' in line]
    if run.returncode and not errors:
        errors = run.stdout.splitlines()[:5]
    return len(paths), errors


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('check', choices=('includes', 'sizes', 'spdx', 'symbols', 'format'))
    parser.add_argument('path', help='the source tree; for symbols, the archive of proto')
    args = parser.parse_args()
    count, errors = globals()['check_' + args.check](args.path)
    for error in errors:
        print(error)
    print(f'{args.check}: {count} files, {len(errors)} wrong')
    return 1 if errors or not count else 0


if __name__ == '__main__':
    sys.exit(main())
