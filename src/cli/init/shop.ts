import type { Files } from '../new-files.ts'
import type { PackageSource } from './package-source.ts'

/** Parts of a package.json that only some projects have. */
interface Additions {
  readonly scripts?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** The files of every project, whatever it sells. */
export function commonFiles(name: string, source: PackageSource, additions: Additions = {}): Files {
  const { scripts, ...rest } = additions
  const manifest = {
    name,
    private: true,
    type: 'module',
    scripts: {
      check: 'ratecard check',
      sandbox: 'ratecard serve --sandbox',
      start: 'ratecard serve',
      ...scripts,
    },
    dependencies: source.kind === 'clone' ? {} : { ratecard: source.range },
    ...rest,
  }
  return new Map([
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['.gitignore', 'node_modules/\n.ratecard/\n.env\n'],
  ])
}

/** A shop that sells one thing, with everything that belongs to it. */
export function firstShop(name: string, source: PackageSource): Files {
  return new Map([
    ['catalog.yaml', CATALOG],
    ['handlers/index.js', INDEX],
    ['handlers/moon.js', HANDLER],
    ['test/moon.test.js', TEST],
    ['tsconfig.json', TSCONFIG],
    ...commonFiles(name, source, {
      scripts: { test: 'node --test', types: 'ratecard types > handlers/catalog.d.ts && tsc' },
      devDependencies: { typescript: '^6.0.0' },
    }),
  ])
}

const CATALOG = `# Everything that is sold, and for how much. "ratecard check" says what is wrong here, "ratecard routes" what it makes.
catalog: 1

service:
  name: My shop
  version: '1.0.0'
  description: What is sold, to whom, made of which data.

# Who is paid is not in this file: set PAY_TO, an address of yours. The sandbox needs none of it.
payments:
  currency: USD
  x402: { networks: [base] }

routes:
  /paid/moon/{date}:
    price: 0.002
    summary: Phase, age and light of the moon on a day
    use_when: You need to know how bright a night will be.
    # The same work for the same day: no need to do it twice.
    cache: 1d
    parameters:
      date: { type: string, format: date, example: '2026-12-24' }
    example: { date: '2026-12-24', age_days: 15.1, lit: 1, phase: full moon }
    # A free twin under /sample/, so that buyers see what they get.
    sample: true
`

const INDEX = `import { moon } from './moon.js'

/**
 * Every handler by the name the catalog has for it.
 *
 * @satisfies {Partial<import('./catalog.d.ts').Handlers>}
 */
export const handlers = {
  moon,
}
`

const HANDLER = `/** From one new moon to the next, in days. */
const MONTH = 29.530588853
/** A new moon. */
const NEW_MOON = Date.UTC(2000, 0, 6, 18, 14)
const DAY = 86_400_000

const PHASES = [
  'new moon',
  'waxing crescent',
  'first quarter',
  'waxing gibbous',
  'full moon',
  'waning gibbous',
  'last quarter',
  'waning crescent',
]

/**
 * What is sold at /paid/moon/{date}. Parameters arrive checked and complete; a buyer is charged only for what is
 * returned. To refuse, throw: \`import { Failure } from 'ratecard'\`, \`throw new Failure('not_found', 'why')\`.
 *
 * @type {import('./catalog.d.ts').Handler<'moon'>}
 */
export const moon = async ({ date }) => {
  const days = (Date.parse(\`\${date}T12:00:00Z\`) - NEW_MOON) / DAY
  const part = (((days % MONTH) + MONTH) % MONTH) / MONTH
  return {
    source: [{ name: 'computed' }],
    body: {
      date,
      age_days: Math.round(part * MONTH * 10) / 10,
      lit: Math.round((1 - Math.cos(part * 2 * Math.PI)) * 50) / 100,
      phase: PHASES[Math.round(part * PHASES.length) % PHASES.length] ?? '',
    },
  }
}
`

const TEST = `import assert from 'node:assert/strict'
import test from 'node:test'
import { moon } from '../handlers/moon.js'

test('the moon is full on Christmas Eve 2026', async () => {
  const { body } = await moon({ date: '2026-12-24' })
  assert.deepEqual(body, { date: '2026-12-24', age_days: 15.1, lit: 1, phase: 'full moon' })
})
`

const TSCONFIG = `{
  "compilerOptions": {
    "allowJs": true,
    "checkJs": true,
    "noEmit": true,
    "strict": true,
    "module": "nodenext",
    "target": "es2023",
    "types": [],
    "skipLibCheck": true
  },
  "include": ["handlers"]
}
`
