/**
 * Draws the terminal of README from a real session: a price is edited while the tea example serves, the service reloads it,
 * `plan` shows what changes for buyers, and a call is paid. `npm run pictures` runs it, and takes those of the pages.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startServer } from '../support/server.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PROGRAM = join(ROOT, 'dist/main.js')
const place = mkdtempSync(join(tmpdir(), 'ratecard-front-'))

const HANDLERS = `
const brew = async ({ leaf, cups }) => ({
  source: [{ name: 'computed' }],
  body: { leaf, grams: 2 * cups, celsius: 75, seconds: 60 },
})
const blend = async ({ leaves }) => ({ source: [{ name: 'computed' }], body: { leaves, celsius: 75 } })
export const handlers = { 'tea/brew': brew, 'tea/blend': blend }
`

interface Line {
  readonly text: string
  readonly kind: 'typed' | 'output' | 'mark'
}

function run(...args: readonly string[]): readonly Line[] {
  const { stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    cwd: place,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], DATA_DIR: join(place, '.ratecard') },
  })
  return `${stderr}${stdout}`
    .split('\n')
    .filter((text) => text.trim() !== '')
    .map((text) => ({ text, kind: 'output' }))
}

const typed = (text: string): Line => ({ text: `$ ${text}`, kind: 'typed' })

async function session(): Promise<readonly Line[]> {
  cpSync(join(ROOT, 'examples/tea/catalog.yaml'), join(place, 'catalog.yaml'))
  cpSync(join(place, 'catalog.yaml'), join(place, 'before.yaml'))
  mkdirSync(join(place, 'handlers'))
  writeFileSync(join(place, 'handlers/index.js'), HANDLERS)
  writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
  const server = await startServer({
    program: PROGRAM,
    cwd: place,
    args: ['--sandbox', '--handlers', join(place, 'handlers')],
    dataDir: join(place, '.ratecard'),
  })
  try {
    const file = join(place, 'catalog.yaml')
    writeFileSync(file, readFileSync(file, 'utf8').replace('price: 0.005', 'price: 0.006'))
    await server.said(/→/)
    const reloaded = server
      .output()
      .split('\n')
      .find((line) => line.includes('→'))
    if (reloaded === undefined) throw new Error(`no reload:\n${server.output()}`)
    const paid = run('pay', `${server.url}/paid/tea/brew/sencha?cups=3`)
    return [
      typed("sed -i 's/price: 0.005/price: 0.006/' catalog.yaml"),
      { text: reloaded.replace(/ \(new handler.*/, ''), kind: 'mark' },
      typed('ratecard plan --against before.yaml'),
      ...run('plan', 'catalog.yaml', '--against', 'before.yaml'),
      typed("ratecard pay '/paid/tea/brew/sencha?cups=3'"),
      ...paid,
    ]
  } finally {
    await server.stop()
  }
}

const [WIDTH, LINE, PAD] = [920, 20, 18]
const COLUMNS = 112
/** Seconds before a line appears. */
const PAUSES = { typed: 1.4, output: 0.16, mark: 0.9 } as const
const COLOURS = { typed: '#e6edf3', output: '#9fb0c0', mark: '#7ee2a8' } as const

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/**
 * The first line is there at once, and the others appear one after the other. Readers who prefer reduced motion, and
 * programs that do not animate, see all of them.
 */
function draw(lines: readonly Line[]): string {
  const height = PAD * 2 + lines.length * LINE
  let at = 0
  const rows = lines.map(({ text, kind }, place) => {
    if (place > 0) at += PAUSES[kind]
    const shown = text.length > COLUMNS ? `${text.slice(0, COLUMNS - 1)}…` : text
    const y = PAD + LINE * (place + 1) - 6
    const motion = place === 0 ? 'animation:none' : `animation-delay:${at.toFixed(2)}s`
    return `<text x="${PAD}" y="${y}" fill="${COLOURS[kind]}" style="${motion}">${escape(shown)}</text>`
  })
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    '<title>A price is edited, the running service reloads it, plan shows what changes for buyers, a call is paid</title>',
    '<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre;animation:appear .2s backwards}@keyframes appear{from{opacity:0}}@media (prefers-reduced-motion:reduce){text{animation:none}}</style>',
    `<rect width="${WIDTH}" height="${height}" rx="8" fill="#0d1420"/>`,
    ...rows,
    '</svg>',
    '',
  ].join('\n')
}

try {
  writeFileSync(join(ROOT, '.github/terminal.svg'), draw(await session()))
} finally {
  rmSync(place, { recursive: true, force: true })
}
