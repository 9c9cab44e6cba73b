import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const SRC = fileURLToPath(new URL('../../src', import.meta.url))

/** What the application puts together. */
const ENGINE = [
  'engine/base',
  'engine/catalog',
  'engine/ledger',
  'engine/cache',
  'engine/documents',
  'engine/chains',
  'engine/payment',
  'engine/x402',
  'engine/mpp',
  'engine/reconcile',
  'engine/refunds',
  'engine/purchase',
  'engine/usage',
  'engine/sign-in',
  'engine/receipts',
  'engine/http',
  'engine/webhooks',
]

/**
 * Who may import whom, types included: `handler` is what a service
 * implements, `public` what the package exports.
 */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  main: ['cli', 'command-line', 'env'],
  /** The table of all settings. */
  settings: [],
  env: ['settings'],
  'command-line': ['env', 'handler', 'engine/base'],
  // A package of its own: what it imports is bundled with it.
  buyer: ['command-line', 'env', 'handler', 'engine/base', 'vendor'],
  cli: [
    'console',
    'engine/app',
    'handler',
    'buyer',
    'command-line',
    'env',
    'settings',
    'sandbox',
    'engine/mcp',
    ...ENGINE,
  ],
  console: ENGINE,
  // `ratecard/testing` pays as `ratecard pay` does.
  testing: ['buyer', 'public', 'engine/app', 'sandbox', 'handler', ...ENGINE],
  // It is a package of its own, and imports the framework by its name.
  service: [],
  sandbox: ['handler', 'vendor', ...ENGINE],
  // What is used of packages that the build bundles.
  vendor: [],
  public: ['engine/app', 'handler', ...ENGINE],
  handler: ['engine/base'],
  'engine/app': ['handler', 'settings', 'env', ...ENGINE],
  'engine/base': [],
  'engine/catalog': ['handler', 'engine/base'],
  'engine/ledger': ['engine/base'],
  'engine/cache': ['engine/catalog', 'engine/base'],
  'engine/documents': ['engine/catalog', 'handler', 'engine/base'],
  'engine/chains': ['engine/ledger', 'engine/base', 'vendor'],
  'engine/payment': ['engine/chains', 'engine/catalog', 'engine/ledger', 'engine/base'],
  'engine/receipts': ['engine/ledger', 'engine/base'],
  'engine/x402': [
    'engine/receipts',
    'engine/payment',
    'engine/chains',
    'engine/catalog',
    'engine/ledger',
    'engine/base',
  ],
  'engine/mpp': [
    'engine/payment',
    'engine/chains',
    'engine/catalog',
    'engine/ledger',
    'engine/base',
    'vendor',
  ],
  'engine/reconcile': [
    'engine/x402',
    'engine/mpp',
    'engine/payment',
    'engine/refunds',
    'engine/chains',
    'engine/ledger',
    'engine/base',
  ],
  'engine/refunds': [
    'engine/mpp',
    'engine/payment',
    'engine/chains',
    'engine/ledger',
    'engine/base',
    'vendor',
  ],
  'engine/usage': ['engine/ledger', 'engine/base'],
  'engine/webhooks': ['engine/payment', 'engine/ledger', 'engine/catalog', 'engine/base'],
  'engine/sign-in': ['engine/chains', 'engine/ledger', 'engine/base'],
  'engine/purchase': [
    'engine/receipts',
    'engine/payment',
    'engine/chains',
    'engine/ledger',
    'engine/cache',
    'engine/catalog',
    'handler',
    'engine/base',
  ],
  'engine/mcp': [
    'engine/sign-in',
    'engine/purchase',
    'engine/payment',
    'engine/ledger',
    'engine/documents',
    'engine/catalog',
    'engine/usage',
    'handler',
    'engine/base',
  ],
  'engine/http': [
    'engine/receipts',
    'engine/mcp',
    'engine/sign-in',
    'engine/purchase',
    'engine/usage',
    'engine/payment',
    'engine/chains',
    'engine/ledger',
    'engine/cache',
    'engine/documents',
    'engine/catalog',
    'handler',
    'engine/base',
  ],
}

/** Packages that one place knows, so that they can be replaced there. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '@electric-sql/pglite': ['service'],
  '@energetic-ai/embeddings': ['service'],
  '@koa/router': ['engine/http'],
  '@modelcontextprotocol/server': ['engine/mcp', 'buyer'],
  handlebars: ['engine/documents'],
  ioredis: ['engine/ledger', 'engine/cache'],
  koa: ['engine/http', 'engine/app'],
  lmdb: ['engine/ledger'],
  'lru-cache': ['engine/cache'],
  'prom-client': ['cli'],
  pino: ['cli'],
  mppx: ['vendor'],
  pg: ['service'],
  'tiny-secp256k1': ['engine/chains'],
  viem: ['vendor'],
  'vendor/mppx.ts': ['engine/mpp', 'buyer'],
  'vendor/mppx-client.ts': ['buyer'],
  'vendor/mppx-server.ts': ['engine/mpp'],
  yaml: ['engine/catalog', 'service', 'cli'],
}

interface Import {
  readonly from: string
  readonly to: string
  readonly specifier: string
}

function sources(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return sources(path)
    return entry.name.endsWith('.ts') ? [path] : []
  })
}

function importsOf(file: string): Import[] {
  // Examples in docstrings contain imports too.
  const text = readFileSync(file, 'utf8').replaceAll(/^ *\*.*$/gm, '')
  const found = text.matchAll(
    /(?:^|\s)(?:import|export)\s[^'"]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|^import\s+'([^']+)'/gm,
  )
  return [...found].map(([, a, b, c]) => {
    const specifier = a ?? b ?? c ?? ''
    const to = specifier.startsWith('.') ? relative(SRC, join(dirname(file), specifier)) : specifier
    return { from: relative(SRC, file), to, specifier }
  })
}

function layerOf(file: string): string {
  if (/^engine\/(?:index|scheme)\.ts$/.test(file)) return 'public'
  if (/^engine\/(?:handler|service-definition)\.ts$/.test(file)) return 'handler'
  if (file === 'engine/testing.ts') return 'testing'
  const [first = '', second = ''] = file.split('/')
  if (first === 'engine') return `engine/${second}`
  return first.replace(/\.ts$/, '')
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

const files = sources(SRC)
const imports = files.flatMap(importsOf)
const inner = imports.filter(({ specifier }) => specifier.startsWith('.'))

t.test('imports run one way, so the engine works without the service', async (t) => {
  for (const { from, to } of inner) {
    const [source, target] = [layerOf(from), layerOf(to)]
    t.ok(source === target || ALLOWED[source]?.includes(target), `${from} may not import ${to}`)
  }
})

t.test('imports are free of cycles, types included', async (t) => {
  const graph = new Map<string, string[]>()
  for (const { from, to } of inner) graph.set(from, [...(graph.get(from) ?? []), to])
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): void => {
    if (trail.includes(file)) t.fail(`cycle: ${[...trail.slice(trail.indexOf(file)), file].join(' → ')}`)
    else if (!done.has(file)) {
      for (const next of graph.get(file) ?? []) visit(next, [...trail, file])
      done.add(file)
    }
  }
  for (const file of graph.keys()) visit(file, [])
  t.ok(done.size > 50, 'the walk has seen the sources')
})

t.test('--version and --help load only the command line itself', async (t) => {
  const loaded = new Set<string>()
  const load = (file: string): void => {
    if (loaded.has(file)) return
    loaded.add(file)
    const text = readFileSync(join(SRC, file), 'utf8')
    for (const [, specifier = ''] of text.matchAll(
      /^(?:import|export)\s(?!type\s)[^'"]*?from\s+'([^']+)'/gm,
    )) {
      if (specifier.startsWith('.')) load(join(dirname(file), specifier))
      else t.match(specifier, /^node:/, `${file} loads a package`)
    }
  }
  load('main.ts')
  t.ok(loaded.has('cli/commands.ts'), 'the walk has seen the commands')
  t.strictSame(
    [...loaded].filter((file) => /^(?:engine|service|sandbox)\//.test(file)),
    [],
  )
})

t.test('imports each package in one place', async (t) => {
  for (const { from, to, specifier } of imports) {
    const places = PACKAGES[to] ?? PACKAGES[packageOf(specifier)]
    if (places !== undefined) t.ok(places.includes(layerOf(from)), `${from} may not import ${specifier}`)
  }
})

t.test('the framework and the service each declare the packages that they import', async (t) => {
  const declared = (path: string): string[] => {
    const { dependencies, optionalDependencies, peerDependencies } = JSON.parse(
      readFileSync(join(SRC, path), 'utf8'),
    )
    return Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })
  }
  const { peerDependencies } = JSON.parse(readFileSync(join(SRC, '../package.json'), 'utf8'))
  const framework = declared('../package.json')
  const service = declared('service/package.json')
  for (const { from, specifier } of imports) {
    if (specifier.startsWith('.') || specifier.startsWith('node:')) continue
    const name = packageOf(specifier)
    // Texts of new projects contain imports too.
    const isTemplate = from.startsWith('cli/') && /^ratecard$|[${]/.test(name)
    // The build puts these into dist/vendor.
    if (layerOf(from) === 'vendor') t.ok(['viem', 'mppx'].includes(name), `${from} imports ${name}`)
    // The process of the local Solana chain, which starts where these packages are installed.
    else if (from.startsWith('sandbox/svm/')) t.ok(name in peerDependencies, `${from} imports ${name}`)
    else if (layerOf(from) !== 'service')
      t.ok(isTemplate || framework.includes(name), `${from} imports ${name}`)
    else t.ok(service.includes(name) || name === 'ratecard', `${from} imports ${specifier}`)
  }
})

t.test('reads the environment where a program starts alone', async (t) => {
  for (const file of files) {
    const name = relative(SRC, file)
    // A quoted line is text for readers, not code.
    const reads = /^[^'"`]*process\.env/m.test(readFileSync(file, 'utf8'))
    t.ok(!reads || /^(?:buyer\/)?main\.ts$/.test(name), `${name} reads process.env`)
  }
})

t.test('names files after what they contain', async (t) => {
  for (const file of files) {
    const name = relative(SRC, file)
    // A command's file is named after the command, a handler's folder after its route: /paid/util/….
    if (!/^(?:cli|service\/handlers\/util)\//.test(name))
      t.notMatch(name, /(?:^|\/)(?:utils?|helpers?|common|manager|types)(?:\.ts|\/)/)
    t.notMatch(readFileSync(file, 'utf8'), /^export default /m, `${relative(SRC, file)} has a default export`)
  }
})

t.test('each entry of the package writes its exports out', async (t) => {
  const { exports } = JSON.parse(readFileSync(join(SRC, '../package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, string | { readonly types: string }>>
  }
  const entries = Object.values(exports).flatMap((each) => (typeof each === 'string' ? [] : [each.types]))
  t.equal(entries.length, 5)
  for (const entry of entries) {
    const text = readFileSync(join(SRC, entry.replace(/^\.\/dist\/(.*)\.d\.ts$/, '$1.ts')), 'utf8')
    t.notMatch(text, /^export \*/m, entry)
  }
})

t.test('starts processes in test/system only', async (t) => {
  const starts = /child_process|startAnvil|startEvmChain|worker_threads/
  const root = fileURLToPath(new URL('..', import.meta.url))
  const seen = new Map<string, boolean>()
  const startsProcess = (file: string): boolean => {
    const known = seen.get(file)
    if (known !== undefined) return known
    seen.set(file, false)
    const text = readFileSync(file, 'utf8')
    const found =
      starts.test(text) ||
      Array.from(text.matchAll(/(?:from|import\() ?'(\.[^']+\.ts)'/g)).some(([, path = '']) => {
        const imported = join(dirname(file), path)
        return imported.startsWith(root) && startsProcess(imported)
      })
    seen.set(file, found)
    return found
  }
  for (const file of sources(join(root, 'unit'))) {
    if (file !== fileURLToPath(import.meta.url)) t.notOk(startsProcess(file), relative(root, file))
  }
})
