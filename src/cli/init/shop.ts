import type { Files } from '../new-files.ts'
import type { PackageSource } from './package-source.ts'

export type Language = 'javascript' | 'typescript'

/** Parts of a package.json that only some projects have. */
interface Additions {
  readonly scripts?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

/** The files of every project, whatever it sells. */
export function commonFiles(
  name: string,
  source: PackageSource,
  language: Language,
  additions: Additions = {},
): Files {
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
  const compiled = language === 'typescript' ? 'handlers/**/*.js\ntest/**/*.js\n' : ''
  return new Map([
    ['package.json', `${JSON.stringify(manifest, null, 2)}\n`],
    ['.gitignore', `node_modules/\n.ratecard/\n.env\n${compiled}`],
    ['.dockerignore', `node_modules\n.ratecard\n.env\n.git\n`],
    ['Dockerfile', DOCKERFILES[language]],
    ['.github/workflows/ci.yml', workflow(Object.keys(manifest.scripts))],
  ])
}

/** A shop that sells one thing, with everything that belongs to it. */
export function firstShop(name: string, source: PackageSource, language: Language): Files {
  const ending = language === 'typescript' ? 'ts' : 'js'
  const types = TYPES_FILE[language]
  const typescript = { typescript: '^6.0.0' }
  return new Map([
    ['catalog.yaml', CATALOG],
    [`handlers/index.${ending}`, INDEX[language]],
    [`handlers/moon.${ending}`, HANDLER[language]],
    [`test/moon.test.${ending}`, testText(ending)],
    ['tsconfig.json', TSCONFIG[language]],
    ...commonFiles(name, source, language, {
      scripts:
        language === 'typescript'
          ? {
              build: 'tsc',
              check: 'tsc && ratecard check',
              sandbox: 'tsc && ratecard serve --sandbox',
              test: 'tsc && node --test test/*.test.js',
              types: `ratecard types --out ${types}`,
            }
          : { test: 'node --test', types: `ratecard types --out ${types} && tsc` },
      devDependencies: language === 'typescript' ? { '@types/node': '^20.19.0', ...typescript } : typescript,
    }),
  ])
}

/** Where the types of the catalog belong. */
export const TYPES_FILE: Readonly<Record<Language, string>> = {
  javascript: 'handlers/catalog.d.ts',
  typescript: 'handlers/catalog.ts',
}

const CATALOG = `# yaml-language-server: $schema=./node_modules/ratecard/catalog.schema.json
# Everything that is sold, and its price. "ratecard check" reports every error, "ratecard routes" lists the result.
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

const INDEX: Readonly<Record<Language, string>> = {
  javascript: `import { moon } from './moon.js'

/**
 * Every handler by its name in the catalog.
 *
 * @satisfies {Partial<import('./catalog.d.ts').Handlers>}
 */
export const handlers = {
  moon,
}
`,
  typescript: `import type { Handlers } from './catalog.ts'
import { moon } from './moon.ts'

/** Every handler by its name in the catalog. */
export const handlers = {
  moon,
} satisfies Partial<Handlers>
`,
}

const CONSTANTS = `/** From one new moon to the next, in days. */
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
`

const PURPOSE = `What is sold at /paid/moon/{date}. Parameters arrive checked and complete; a buyer is charged only for what is
 * returned. To refuse, throw: \`import { Failure } from 'ratecard/handler'\`, \`throw new Failure('not_found', 'why')\`.`

const RUN = `async ({ date }) => {
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
}`

const HANDLER: Readonly<Record<Language, string>> = {
  javascript: `${CONSTANTS}
/**
 * ${PURPOSE}
 *
 * @type {import('./catalog.d.ts').Handler<'moon'>}
 */
export const moon = ${RUN}
`,
  typescript: `import type { Handler } from './catalog.ts'

${CONSTANTS}
/**
 * ${PURPOSE}
 */
export const moon = (${RUN}) satisfies Handler<'moon'>
`,
}

const testText = (ending: string): string => `import assert from 'node:assert/strict'
import test from 'node:test'
import { startTestServer } from 'ratecard/testing'
import { handlers } from '../handlers/index.${ending}'

test('sells the phase of the moon for 0.002 USD', async (t) => {
  const server = await startTestServer({ catalog: 'catalog.yaml', handlers })
  t.after(() => server.close())
  const response = await server.fetch('/paid/moon/2026-12-24')
  assert.equal(response.status, 200)
  assert.match(await response.text(), /full moon/)
  assert.equal(await server.received(), 2_000n)
})
`

const TSCONFIG: Readonly<Record<Language, string>> = {
  javascript: `{
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
`,
  // The compiled files are next to the sources, where "ratecard" looks for handlers/index.js.
  typescript: `{
  "compilerOptions": {
    "target": "es2023",
    "module": "nodenext",
    "types": ["node"],
    "strict": true,
    "noUncheckedIndexedAccess": true,
    "verbatimModuleSyntax": true,
    "rewriteRelativeImportExtensions": true,
    "skipLibCheck": true
  },
  "include": ["handlers", "test"]
}
`,
}

const DOCKERFILES: Readonly<Record<Language, string>> = {
  javascript: `FROM node:22-bookworm-slim
ENV NODE_ENV=production DATA_DIR=/data
WORKDIR /app
COPY package*.json ratecard-*.tgz* ./
RUN npm ci --omit=dev
COPY . .
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 4021
CMD ["node", "node_modules/ratecard/dist/main.js", "serve"]
`,
  typescript: `FROM node:22-bookworm-slim AS build
WORKDIR /app
COPY package*.json ratecard-*.tgz* ./
RUN npm ci
COPY . .
RUN npm run build && npm prune --omit=dev

FROM node:22-bookworm-slim
ENV NODE_ENV=production DATA_DIR=/data
WORKDIR /app
COPY --from=build /app /app
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 4021
CMD ["node", "node_modules/ratecard/dist/main.js", "serve"]
`,
}

const workflow = (scripts: readonly string[]): string => `name: ci
on:
  push: { branches: [main] }
  pull_request: {}
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with: { fetch-depth: 0 }
      - uses: actions/setup-node@v4
        with: { node-version: 22 }
      - run: npm ci
      - run: npm run check
${scripts.includes('test') ? '      - run: npm test\n' : ''}      # Ends with 2 when a price rises or existing calls break.
      - if: github.event_name == 'pull_request'
        run: npx ratecard plan --against "origin/$GITHUB_BASE_REF" --markdown >> "$GITHUB_STEP_SUMMARY"
`
