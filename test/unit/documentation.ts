import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { COMMANDS } from '../../src/cli/commands.ts'
import { catalogSchema } from '../../src/engine/catalog/schema.ts'
import { compileText } from '../../src/engine/catalog/load-catalog.ts'
import { blocksOf, PAGES, ROOT, textOf, type Block } from '../support/markdown.ts'

const SKELETON = {
  catalog: 1,
  service: { name: 'Example', version: '1.0.0' },
  payments: { currency: 'USD', x402: { networks: ['base'] } },
  routes: {
    '/paid/util/workday': {
      price: 0.002,
      summary: 'Working days of a country',
      parameters: {
        country: { type: 'string', default: 'US', format: 'country' },
        date: { type: 'string', default: '', format: 'date' },
        days: { type: 'integer', default: 14, minimum: 1, maximum: 366 },
      },
      example: { working_days: 10 },
    },
  },
} as const

const SURROUNDINGS = {
  handlers: undefined,
  documents: [],
  read: (path: string) =>
    /\.(?:json|txt)$/.test(path) ? Buffer.from(path.endsWith('.json') ? '{}' : '') : undefined,
}
const LANGUAGES = new Set(['sh', 'console', 'yaml', 'ts', 'js', 'json', 'nginx', 'http', 'text'])

for (const page of PAGES)
  t.test(`the links, paths, catalogs and data of ${page} are valid`, async (t) => {
    for (const [, target = ''] of textOf(page).matchAll(/\]\((?!https?:|#)([^)#]+)[^)]*\)/g))
      t.ok(existsSync(join(ROOT, dirname(page), target)), target)
    for (const [, path = ''] of textOf(page).matchAll(/`((?:src|test|deploy|docs|examples)\/[\w./-]+)`/g))
      if (!path.includes('NAME')) t.ok(existsSync(join(ROOT, path)), path)
    for (const block of blocksOf(page)) {
      const { language, line, text } = block
      t.ok(LANGUAGES.has(language), `${page}:${line} says that it is ${language}`)
      if (language === 'json') JSON.parse(text)
      if (language !== 'yaml' || /^services:/m.test(text)) continue
      const { warnings } = compileText('catalog.yaml', catalogOf(block), SURROUNDINGS)
      t.same(warnings, [], `${page}:${line} passes check`)
    }
  })

/** A page may show a whole catalog, some of its top-level keys, or routes alone: what is missing is added. */
function catalogOf({ text }: Block): string {
  const shown = parse(text) as Record<string, object>
  if ('catalog' in shown) return text
  const keys = Object.keys(shown)
  if (keys.every((key) => /^(?:[A-Z]+ )?\//.test(key)))
    return stringify({ ...SKELETON, routes: { ...SKELETON.routes, ...shown } })
  for (const key of keys)
    if (!(key in catalogSchema.properties)) throw new Error(`${key} is no key of a catalog`)
  return stringify({ ...SKELETON, ...shown, routes: { ...SKELETON.routes, ...shown['routes'] } })
}

const ENTRY_POINTS = ['index', 'handler', 'testing', 'scheme']

/** Names that an entry point exports, its own and those of other files. */
function exportsOf(entry: string): string[] {
  const text = textOf(`src/engine/${entry}.ts`)
  const own = text.matchAll(/^export (?:async )?(?:class|const|function|interface|type) (\w+)/gm)
  const lists = text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)
  return [
    ...Array.from(own, ([, name = '']) => name),
    ...Array.from(lists, ([, names = '']) => names.replaceAll(/\btype /g, '').match(/\w+/g) ?? []).flat(),
  ]
}

t.test('documents every public function and class with an example', async (t) => {
  const names = new Set(ENTRY_POINTS.flatMap(exportsOf))
  const sources = readdirSync(join(ROOT, 'src/engine'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => textOf(`src/engine/${path}`))
  for (const name of names) {
    const declaration = new RegExp(`^export (?:async )?(?:class|const|function) ${name}\\b`, 'm')
    const text = sources.find((source) => declaration.test(source))
    if (text === undefined) continue
    const before = text.slice(0, text.search(declaration))
    const comment = before.slice(before.lastIndexOf('/**'))
    t.ok(/@example[^]*\*\/\n$/.test(comment), `${name} has an example`)
  }
})

t.test('lists every command in README.md, with its arguments, as --help describes it', async (t) => {
  const rows = Array.from(
    textOf('README.md').matchAll(/^\| `(\w[^`]*)` +\| (.*?) +\|$/gm),
    ([, usage, summary]) => [usage, summary],
  )
  t.strictSame(
    rows,
    COMMANDS.map(({ name, operands, summary }) => [[name, ...operands].join(' '), summary]),
  )
})

t.test('gives reasons in docs/decisions for packages that are dependencies', async (t) => {
  const installed = ['package.json', 'src/service/package.json'].flatMap((path) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as Readonly<Record<string, unknown>>
    // Bundled packages are development dependencies.
    return ['dependencies', 'optionalDependencies', 'devDependencies'].flatMap((kind) =>
      Object.keys(manifest[kind] ?? {}),
    )
  })
  const [, table = ''] =
    /^\| Package .*\n.*\n((?:\|.*\n)+)/m.exec(textOf('docs/decisions/libraries.md')) ?? []
  const named = Array.from(table.matchAll(/^\| (.*?) +\|/gm)).flatMap(([, names = '']) => names.split(', '))
  t.ok(named.length > 5)
  for (const name of named) t.ok(installed.includes(name), name)
})

t.test('finds each decision from the index of its subject', async (t) => {
  const index = textOf('docs/decisions/README.md')
  const pages = PAGES.filter((page) => /^docs\/decisions\/(?!README)/.test(page))
  t.ok(pages.length > 5)
  for (const page of pages) {
    t.ok(index.includes(`](${page.replace('docs/decisions/', '')})`), `${page} is in the index`)
    for (const entry of textOf(page).split(/^## /m).slice(1)) {
      const [title = ''] = entry.split('\n')
      for (const part of ['Why', 'Instead of', 'Cost', 'Revisit'])
        t.match(entry, `- **${part}**: `, `${page}, ${title}: ${part}`)
    }
  }
})
