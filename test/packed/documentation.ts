import { spawnSync } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { blocksOf, PAGES, ROOT, textOf, type Block } from '../support/markdown.ts'
import { Session } from './support/terminal-session.ts'

const PLACE = mkdtempSync(join(tmpdir(), 'ratecard-pages-'))
const PARTS =
  'package.json package-lock.json bundle tsconfig.json catalog.yaml catalog.schema.json templates src dist examples'.split(
    ' ',
  )
t.teardown(() => spawnSync('rm', ['-rf', PLACE]))

// Those of examples are run where the package is installed: by examples.ts.
const pages = PAGES.filter((page) => !page.startsWith('examples/'))
const blocks = pages.flatMap(blocksOf)
const isTyped = ({ language }: Block): boolean => language === 'sh' || language === 'console'

/** A clone in its own folder, because the commands of a page may write next to it. */
function cloneFor(page: string): string {
  const clone = join(PLACE, page.replaceAll('/', '-'), 'ratecard')
  for (const part of PARTS) cpSync(join(ROOT, part), join(clone, part), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(clone, 'node_modules'))
  // Projects next to the clone have the package installed; examples.ts installs it in earnest.
  const installed = join(clone, '../node_modules')
  mkdirSync(join(installed, '.bin'), { recursive: true })
  symlinkSync(clone, join(installed, 'ratecard'))
  symlinkSync(join(clone, 'dist/main.js'), join(installed, '.bin/ratecard'))
  symlinkSync(join(clone, 'src/buyer/dist/main.js'), join(installed, '.bin/ratecard-buyer'))
  return clone
}

/** The programs under `@example` in the docstrings of a file. */
function examplesOf(file: string): string[] {
  const source = readFileSync(join(ROOT, 'src/engine', file), 'utf8')
  return Array.from(
    source.matchAll(
      /^ *\/\*\*(?:(?!\*\/)[^])*?@example\n((?:(?!\*\/)[^])*)\*\/\n(?:export (?:async )?function (\w+))?/gm,
    ),
    ([, lines = '', documented]) => {
      const text = lines.replaceAll(/^ *\* ?/gm, '').trimEnd()
      const module = join(ROOT, 'dist/engine', file.replace(/\.ts$/, '.js'))
      // Examples of functions that the package does not export are short.
      return documented === undefined || text.includes('import ')
        ? text
        : `import { ${documented} } from '${module}'\n${text}`
    },
  )
}

/** Each run has figures of its own. */
function shape(line: string): string {
  return line
    .replaceAll(/0x[0-9a-fA-F]+(…[0-9a-fA-F]+)?/g, '0x')
    .replaceAll(/revision \S+( → \S+)?/g, 'revision')
    .replaceAll(/\d+/g, '#')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

for (const page of pages) {
  const typed = blocksOf(page).filter((block) => isTyped(block) && block.mark === '')
  if (typed.length === 0) continue
  t.test(`runs the commands of ${page} as the page describes`, async (t) => {
    const session = new Session(cloneFor(page))
    t.teardown(() => session.close())
    for (const block of typed)
      if (block.language === 'sh') {
        const { code, output } = await session.run(block)
        t.equal(code, 0, `${page}:${block.line}`, { output })
      } else {
        for (const transcript of block.text.replace(/^\$ /, '').split('\n$ ')) {
          const [command = '', ...shown] = transcript.trimEnd().split('\n')
          const { output } = await session.run({ text: command })
          const shapes = new Set(output.split('\n').map(shape))
          for (const line of shown)
            if (line.startsWith('{'))
              for (const [, name = '', value = ''] of line.matchAll(/"(\w+)": ("[^"]*"|\d+)/g))
                t.match(output, `"${name}": ${value}`, `${page}:${block.line} ${command}`)
            else if (line !== '') t.ok(shapes.has(shape(line)), line.trim(), { command, output })
        }
      }
  })
}

t.test('names existing files and images in the commands that need Docker or real money', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    readonly scripts: object
  }
  for (const { page, line, text, mark } of blocks.filter(
    (block) => block.language === 'sh' && block.mark !== '',
  )) {
    t.ok(['docker', 'live', 'scripts'].includes(mark), `${page}:${line} says why: ${mark}`)
    t.equal(spawnSync('bash', ['-n'], { input: text }).status, 0, `${page}:${line} is what a shell reads`)
    for (const [, script = ''] of text.matchAll(/^npm run ([\w-]+)/gm)) t.ok(script in scripts, script)
  }
  const programs = pages.flatMap((page) =>
    Array.from(
      textOf(page).matchAll(
        /(?:ratecard[ -]|dist\/main\.js )((?:payments|data|memory|buyer|ledger|keys|webhooks) \w+|[a-z]+)([^`\n#|]*)/g,
      ),
    ),
  )
  const helps = new Map<string, string>()
  const helpOf = (command: string): string => {
    const known = helps.get(command)
    if (known !== undefined) return known
    const program = command.startsWith('buyer ') ? 'src/buyer/dist/main.js' : 'dist/main.js'
    const args = [join(ROOT, program), ...command.replace('buyer ', '').split(' '), '--help']
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    helps.set(command, status === 0 ? stdout : '')
    return helpOf(command)
  }
  for (const [whole, command = '', rest = ''] of programs) {
    // Prose may say “ratecard is”; a command has a help of its own.
    if (!whole.includes('--') && helpOf(command) === '') continue
    for (const [flag] of rest.matchAll(/--[a-z][a-z-]*/g)) t.match(helpOf(command), flag, whole)
  }
})

t.test('compiles the programs on the pages', async (t) => {
  const folder = join(PLACE, 'programs')
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  cpSync(join(ROOT, 'examples/tea/handlers/catalog.ts'), join(folder, 'catalog.ts'))
  // What the programs import from the reader's own project.
  mkdirSync(join(folder, 'handlers'))
  writeFileSync(
    join(folder, 'handlers/index.js'),
    "export const handlers = { hello: async () => ({ source: [], body: { text: 'Hello' } }) }",
  )
  writeFileSync(
    join(folder, 'ratecard.js'),
    "import { createRatecard } from 'ratecard'\nexport const app = await createRatecard({ catalog: 'catalog.yaml', baseUrl: 'https://api.example.com' })",
  )
  mkdirSync(join(folder, 'service'))
  writeFileSync(
    join(folder, 'service/index.js'),
    "import { defineService } from 'ratecard'\nexport const service = defineService({ handlers: () => ({}) })",
  )
  const hosts = ['express', 'fastify', 'koa-mount'].map((name) => `declare module '${name}'`)
  writeFileSync(join(folder, 'hosts.d.ts'), hosts.join('\n'))
  for (const { page, line, language, text } of blocks.filter(({ language }) => /^[jt]s$/.test(language)))
    writeFileSync(join(folder, `${page.replaceAll(/\W/g, '-')}-${line}.${language}`), text)
  const sources = readdirSync(join(ROOT, 'src/engine'), { recursive: true, encoding: 'utf8' })
  const examples = sources
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      examplesOf(file).map((text, n) => ({
        name: `example-${file.replaceAll(/\W/g, '-')}-${n}.ts`,
        text,
      })),
    )
  t.ok(examples.length >= 18, `${examples.length} examples of docstrings`)
  for (const { name, text } of examples) writeFileSync(join(folder, name), text)
  const options = {
    target: 'es2023',
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
    allowJs: true,
    checkJs: true,
    noImplicitAny: false,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    verbatimModuleSyntax: true,
    paths: {
      ratecard: [join(ROOT, 'dist/engine/index.d.ts')],
      'ratecard/service': [join(ROOT, 'dist/engine/service-definition.d.ts')],
      'ratecard/*': [join(ROOT, 'dist/engine/*.d.ts')],
    },
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, include: ['.'] }))
  const { status, stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], {
    encoding: 'utf8',
  })
  t.equal(status, 0, 'no error', { stdout })
})
