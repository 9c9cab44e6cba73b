import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readmeBlocks } from '../support/readme.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const COPY = mkdtempSync(join(tmpdir(), 'ratecard-readme-'))
const PLACES = 'package.json tsconfig.json catalog.yaml catalog.schema.json templates src dist'.split(' ')

// What README.md has somebody type may edit files.
for (const place of PLACES) cpSync(join(ROOT, place), join(COPY, place), { recursive: true })
symlinkSync(join(ROOT, 'node_modules'), join(COPY, 'node_modules'))
t.teardown(() => spawnSync('rm', ['-rf', COPY]))

const options = {
  cwd: COPY,
  env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: '0', DATA_DIR: join(COPY, 'data') },
}

/** Where each run has figures of its own. */
function shape(line: string): string {
  return line
    .replaceAll(/0x[0-9a-fA-F]+(…[0-9a-fA-F]+)?/g, '0x')
    .replaceAll(/\d+/g, '#')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

const SERVER = /npm run sandbox/
const isTest = (line: string): boolean => line.startsWith('npm cit ')
const blocks = readmeBlocks()

t.test('the first command of README.md would start nothing', async (t) => {
  const [first = '', ...others] =
    blocks
      .find(({ language }) => language === 'sh')
      ?.text.trim()
      .split('\n') ?? []
  const commands = first.replace(/ #.*/, '').split(' && ')
  t.equal(commands[0], 'npm ci', 'which the run of all checks begins with')
  const [tests, typed] = [others.filter(isTest), others.filter((line) => !isTest(line))]
  t.equal(tests.length, 1)
  t.match(readFileSync(join(ROOT, '.ci/run'), 'utf8'), /^npm cit$/m, 'and so does this')
  t.match(commands.at(-1), SERVER)
  const server = spawn('sh', ['-c', commands.slice(1).join(' && ')], {
    ...options,
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(async () => {
    const ended = once(server, 'close')
    // npm and the shell stand between: the signal is for all of them, as Ctrl-C is.
    if (server.pid !== undefined) process.kill(-server.pid, 'SIGINT')
    await ended
  })
  await new Promise<void>((resolve, reject) => {
    server.once('exit', (code) => reject(new Error(`it ended with ${code}`)))
    server.stdout.on('data', (chunk: Buffer) => {
      if (/^listening on /m.test(chunk.toString())) resolve()
    })
  })

  for (const command of typed) {
    const { status, stderr } = spawnSync('sh', ['-c', command], { ...options, encoding: 'utf8' })
    t.equal(status, 0, command, { stderr })
  }
  for (const { text } of blocks.filter(({ language, text }) => language === '' && text.startsWith('$ ')))
    for (const transcript of text.slice(2).split('\n$ '))
      await t.test(`README.md shows what does not happen: ${transcript.split('\n')[0]}`, async (t) => {
        const [command = '', ...shown] = transcript.trimEnd().split('\n')
        const { stdout, stderr } = spawnSync('sh', ['-c', `${command} 2>&1`], {
          ...options,
          encoding: 'utf8',
        })
        const happened = `${stdout}${stderr}`
        const shapes = new Set(happened.split('\n').map(shape))
        for (const line of shown)
          if (line.startsWith('{'))
            for (const [, name = '', value = ''] of line.matchAll(/"(\w+)": ("[^"]*"|\d+)/g))
              t.match(happened, `"${name}": ${value}`)
          else if (line !== '') t.ok(shapes.has(shape(line)), line.trim(), { happened })
      })
})

t.test('README.md would name a command that is not there', async (t) => {
  const { stdout } = spawnSync('sh', ['-c', 'npx --no-install ratecard --help'], {
    ...options,
    encoding: 'utf8',
  })
  const named = readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(/`(?:npx )?ratecard ([a-z]+)/g)
  for (const name of new Set(Array.from(named, ([, name = '']) => name)))
    t.match(stdout, new RegExp(`^ +${name} `, 'm'), name)
})
