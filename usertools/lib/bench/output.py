# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The pmf authors
"""What people read: tables for the terminal and for Markdown from the same rows, and plots."""

import subprocess

WORDS = {'raw': 'raw DPDK'}


def size_text(n):
    for unit, letter in ((1 << 20, 'MiB'), (1 << 10, 'KiB')):
        if n >= unit and n % unit == 0:
            return f'{n // unit} {letter}'
    return f'{n} B'


class Lookup:
    """Entries of a record's summary by what they are."""

    def __init__(self, record):
        self.record = record
        self.entries = {(e['link'], e['who'], e['program'], e['kind'], e['bytes'], e['n'],
                         e['figure']): e for e in record['summary']}

    def who(self, link):
        """The providers of a link, in the order in which they ran."""
        return list(dict.fromkeys(s['who'] for s in self.record['samples']
                                  if s['link'] == link and s['who'] != 'raw'))

    def sizes(self, link, kind):
        return sorted({k[4] for k in self.entries if k[0] == link and k[3] == kind})

    def get(self, link, who, kind, size, figure, program='pmf-perf', n=1):
        return self.entries.get((link, who, program, kind, size, n, figure))

    def raw(self, link, kind, size, figure):
        return self.get(link, 'raw', kind, size, figure, 'pmf-raw')


def cell(entry, scale, digits):
    """Median, and how far the runs lay apart."""
    if entry is None:
        return '-'
    text = f'{entry["median"] * scale:.{digits}f}'
    if entry['runs'] > 1:
        text += f' ({entry["min"] * scale:.{digits}f}-{entry["max"] * scale:.{digits}f})'
    return text


def ratio(entry):
    return f'{entry["to_raw"]["median"]:.2f}' if entry and 'to_raw' in entry else '-'


def by_size(look, link, kind, figure, scale, digits):
    """Rows of one figure over sizes: pmf, its ratio, and the others beside it."""
    others = [who for who in look.who(link) if who != 'pmf']
    rows = [['size', 'pmf', 'pmf / raw', *others]]
    for size in look.sizes(link, kind):
        mine = look.get(link, 'pmf', kind, size, figure)
        rows.append([size_text(size), cell(mine, scale, digits), ratio(mine)] +
                    [cell(look.get(link, who, kind, size, figure), scale, digits)
                     for who in others])
    return rows if len(rows) > 1 else None


def raw_table(look, link):
    rows = [['frame', 'half round trip p50 us', 'p99 us', 'p99.9 us', 'M frames/s', 'GB/s']]
    for size in look.sizes(link, 'flood'):
        rows.append([f'{size} B'] + [cell(look.raw(link, 'ping', size, name), 1, 2)
                                     for name in ('p50', 'p99', 'p99.9')] +
                    [cell(look.raw(link, 'flood', size, 'messages_per_s'), 1e-6, 2),
                     cell(look.raw(link, 'flood', size, 'bytes_per_s'), 1e-9, 2)])
    other = look.get(link, 'raw', 'flood', 64, 'messages_per_s', 'dpdk-testpmd')
    rows.append(['64 B, dpdk-testpmd', '-', '-', '-', cell(other, 1e-6, 2), '-'])
    return rows


def small_table(look, link):
    """What has one size only."""
    rows = [['what', 'median (min-max)', 'pmf / raw']]
    for who in look.who(link):
        for size in look.sizes(link, 'more'):
            e = look.get(link, who, 'more', size, 'messages_per_s')
            if e:
                rows.append([f'{who}: {size} B under FI_MORE, M messages/s', cell(e, 1e-6, 3),
                             ratio(e) if who == 'pmf' else '-'])
        for size in look.sizes(link, 'lat'):
            e = look.get(link, who, 'lat', size, 'mean', 'fi_pingpong')
            if e:
                rows.append([f'{who}: fi_pingpong, {size_text(size)}, mean us', cell(e, 1, 2), '-'])
                e = look.get(link, who, 'lat', size, 'mean')
                rows.append([f'{who}: pmf-perf, {size_text(size)}, mean us', cell(e, 1, 2), '-'])
    for size in look.sizes(link, 'single'):
        e = look.get(link, 'pmf', 'single', size, 'messages_per_s')
        rows.append([f'pmf: {size} B, one message a frame, M messages/s', cell(e, 1e-6, 3), ratio(e)])
    for size in look.sizes(link, 'one_core'):
        e = look.get(link, 'pmf', 'one_core', size, 'p50')
        rows.append([f'pmf: both processes on one core, {size} B, p50 us', cell(e, 1, 2), '-'])
    return rows if len(rows) > 1 else None


def peers_table(look):
    rows = [['peers (processes on a bridge)', '8 B, M messages/s to all']]
    for (_, _, _, kind, _, n, figure), e in sorted(look.entries.items()):
        if kind == 'peers' and figure == 'messages_per_s':
            rows.append([str(n), cell(e, 1e-6, 3)])
    return rows if len(rows) > 1 else None


def endpoints_table(look, link):
    """What a message costs, and how much more than with one peer."""
    rows = [['peers', 'message', 'ns a message to them', 'times one peer', 'from them',
             'times one peer']]
    found = sorted({(k[4], k[5]) for k in look.entries if k[0] == link and k[3] == 'fan_out'})
    for size, n in found:
        row = [str(n), size_text(size)]
        for kind in ('fan_out', 'fan_in'):
            e, one = (look.get(link, 'pmf', kind, size, 'ns_per_message', n=m) for m in (n, 1))
            row += [cell(e, 1, 0), f'{e["median"] / one["median"]:.2f}' if e and one else '-']
        rows.append(row)
    return rows if len(rows) > 1 else None


def loop_table(look):
    rows = [['what', 'median (min-max)']]
    for n in (1, 2):
        e = look.get('loop', 'pmf', 'engines', 8, 'messages_per_s', n=n)
        if e:
            rows.append([f'{n} engine{"s" if n > 1 else ""}, 8 B, M messages/s', cell(e, 1e-6, 2)])
    for name, what in (('ms', 'opening a domain, EAL apart, ms'), ('mb', 'its memory at rest, MB')):
        e = look.get('loop', 'pmf', 'domain', 0, name)
        if e:
            rows.append([what, cell(e, 1, 1)])
    return rows if len(rows) > 1 else None


def progress_table(look):
    rows = [['progress', '8 B half round trip, us, p50', 'p99']]
    for kind in ('manual', 'auto'):
        e = [look.get('loop', 'pmf', kind, 8, name) for name in ('p50', 'p99')]
        if e[0]:
            rows.append([kind, cell(e[0], 1, 2), cell(e[1], 1, 2)])
    return rows if len(rows) > 1 else None


def link_tables(record, link):
    """(title, rows) for one link; the first row is the heading."""
    look = Lookup(record)
    tables = [
        ('raw DPDK', raw_table(look, link)),
        *((f'half round trip, us, {name}', by_size(look, link, 'lat', name, 1, 2))
          for name in ('p50', 'p99', 'p99.9')),
        ('M messages/s one way, buffers reused',
         by_size(look, link, 'reused', 'messages_per_s', 1e-6, 3)),
        ('GB/s one way, buffers reused', by_size(look, link, 'reused', 'bytes_per_s', 1e-9, 3)),
        ('GB/s one way, buffers walked through 64 MB',
         by_size(look, link, 'bw', 'bytes_per_s', 1e-9, 3)),
        ('GB/s both ways together', by_size(look, link, 'both', 'bytes_per_s', 1e-9, 3)),
        ('more', small_table(look, link)),
        ('one endpoint to many of another process, and back, MTU 1500',
         endpoints_table(look, link)),
    ]
    return [(f'{link}: {title}', rows) for title, rows in tables if rows]


def target_table(record):
    words = {True: 'reached', False: 'not reached', None: 'not measured'}
    return ('targets', [['figure', 'target', 'measured', '']] +
            [[t['name'], t['target'], '-' if t['value'] is None else f'{t["value"]:.2f}',
              words[t['reached']]] for t in record['targets']])


def last_tables(record):
    """What belongs to no link of the record."""
    look = Lookup(record)
    tables = [('both ends in one program, loop link', progress_table(look)),
              ('the same: engines, and the domain', loop_table(look)),
              ('one to many, af_packet', peers_table(look))]
    return [*((title, rows) for title, rows in tables if rows), target_table(record)]


def all_tables(record):
    tables = [table for link in record['links'] for table in link_tables(record, link)]
    return [*tables, *last_tables(record)]


def text(title, rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ['', title]
    for row in rows:
        cells = [row[0].ljust(widths[0])] + [c.rjust(w) for c, w in zip(row[1:], widths[1:])]
        lines.append('  ' + '  '.join(cells))
    return '\n'.join(lines)


def trust_lines(record):
    t = record['trust']
    yield ('The figures can be trusted: the machine was quiet and the raw program is as quick as '
           'dpdk-testpmd.' if t['trusted'] else 'The figures are not to be trusted:')
    yield from (f'- {reason}' for reason in t['reasons'])


def machine_lines(record):
    m, o = record['machine'], record['options']
    yield (f'{record["date"]}, {m["cpu"]}, {m["processors"]} processors (used: '
           f'{", ".join(map(str, m["cores"]))}), governor {m["governor"]}, {m["memory_gib"]} GiB, '
           f'{m["hugepages_2m"]} hugepages of 2 MB.')
    yield (f'{m["system"]}, Linux {m["kernel"]}, DPDK {m["dpdk"]}, {m["programs"]}, '
           f'commit {m["commit"]}.')
    yield (f'Medians of {o["runs"]} runs, {o["duration_ms"]} ms a point; in brackets the least and '
           'the most.')
    n = record['noise']
    yield (f'Load at most {n["loadavg_max"]:.2f}, other programs {n["others_mean"]:.2f} processors, '
           f'steal {100 * n["steal_mean"]:.1f} %.')


def markdown(record):
    lines = [*machine_lines(record), '']
    lines += [*trust_lines(record)]
    for title, rows in all_tables(record):
        lines += ['', f'### {title}', '', '| ' + ' | '.join(rows[0]) + ' |',
                  '|' + '---|' * len(rows[0])]
        lines += ['| ' + ' | '.join(row) + ' |' for row in rows[1:]]
    return '\n'.join(lines) + '\n'


# Plots.

def curves(record, link, kind, raw_kind, figure, scale):
    """(name, [(bytes, value)]) of each provider, the raw line first."""
    look = Lookup(record)
    raw = [(size, look.raw(link, raw_kind, size, figure)) for size in look.sizes(link, raw_kind)]
    found = [('raw DPDK (frames)', raw)]
    for who in look.who(link):
        found.append((who, [(size, look.get(link, who, kind, size, figure))
                            for size in look.sizes(link, kind)]))
    for name, points in found:
        points = [(size, e['median'] * scale) for size, e in points if e and e['median'] > 0]
        if points:
            yield name, points


def gnuplot(path, title, unit, lines):
    """Writes one PNG; False where gnuplot is missing or fails."""
    script = [f'set terminal pngcairo size 1000,700; set output "{path}"', f'set title "{title}"',
              'set logscale xy; set format x "%.0s%c"; set xlabel "bytes"', f'set ylabel "{unit}"',
              'set key left top; set grid']
    for i, (_, points) in enumerate(lines):
        script += [f'$d{i} << EOD', *(f'{x} {y}' for x, y in points), 'EOD']
    styles = ['lc rgb "black" lw 3 dt 2' if name.startswith('raw') else 'lw 2' for name, _ in lines]
    script.append('plot ' + ', '.join(
        f'$d{i} with linespoints {style} title "{name}" noenhanced'
        for i, ((name, _), style) in enumerate(zip(lines, styles))))
    try:
        return subprocess.run(['gnuplot'], input='\n'.join(script) + '\n', text=True, timeout=30,
                              check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def plots(record, stem):
    """Latency and bandwidth over size for each link; the files written."""
    written = []
    for link in record['links']:
        for name, kind, raw_kind, figure, scale, unit in (
                ('latency', 'lat', 'ping', 'p50', 1, 'half round trip, us (p50)'),
                ('bandwidth', 'bw', 'flood', 'bytes_per_s', 1e-9, 'GB/s one way')):
            lines = list(curves(record, link, kind, raw_kind, figure, scale))
            path = f'{stem}-{link}-{name}.png'
            if lines and gnuplot(path, f'{link}: {name}', unit, lines):
                written.append(path)
    return written
