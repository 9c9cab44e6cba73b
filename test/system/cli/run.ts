import { readFileSync } from 'node:fs'
import t from 'tap'
import type { Call, Command } from '../../../src/cli/command.ts'
import { EnvError } from '../../../src/env/env-error.ts'
import { COMMANDS } from '../../../src/cli/commands.ts'
import { runLine } from '../../support/run-command.ts'
import { runProgram } from '../../support/server.ts'

function command(work: (call: Call) => Promise<number>): Command {
  return { name: 'odd', summary: 's', operands: [], examples: [], options: {}, run: work }
}

t.test('prints help for the program and for each command', async (t) => {
  for (const word of ['help', '--help', '-h']) {
    const { code, out } = await runLine([word])
    t.equal(code, 0, word)
    for (const { name, summary } of COMMANDS) t.match(out, new RegExp(`${name} +${summary}`))
  }
  for (const { name, operands, options } of COMMANDS) {
    for (const flag of ['--help', '-h']) {
      const { code, out, err } = await runLine([...name.split(' '), flag])
      t.equal(code, 0)
      t.equal(err, '')
      t.match(out, `usage: ratecard ${[name, ...operands].join(' ')}`)
      t.match(out, 'examples:')
      for (const [option, { text }] of Object.entries(options))
        t.match(
          out.split('\n').find((line) => /^ {2}(?:-\w, )?--([a-z0-9-]+)/.exec(line)?.[1] === option) ?? '',
          text,
        )
    }
  }
})

t.test('exits with 64 on a wrong command line, with the right one', async (t) => {
  for (const argv of [
    ['serve', '--port', 'http'],
    ['serve', '--port', '65536'],
    ['serve', '--port', '-1'],
    ['serve', '--port', ''],
    ['serve', '--port'],
    ['serve', '--prot', '1'],
    ['serve', 'catalog.yaml'],
    ['serve', '--sandbox=yes'],
    ['serve', '-p'],
    ['check', 'one.yaml', 'two.yaml'],
    ['check', '--markdown'],
    ['routes', '--json=1'],
    ['print'],
    ['print', '/a', '/b'],
    ['types', '--engine'],
    ['routes', '--version'],
    ['plan', 'a', 'b'],
    ['plan', '--against'],
    ['init', 'a', 'b'],
    ['doctor', 'nowhere', '--production'],
    ['pay'],
    ['pay', '/x', '/y'],
    ['pay', 'paid/ping'],
    ['pay', 'localhost:4021/paid/ping'],
    ['pay', 'ftp://example.com/x'],
    ['pay', '/x', '--max', 'a lot'],
    ['pay', '/x', '--max', '0.0000001'],
    ['pay', '/x', '--max', '-1'],
    ['pay', '/x', '--protocol', 'cash'],
  ]) {
    const { code, out, err } = await runLine(argv)
    t.equal(code, 64, argv.join(' '))
    t.equal(out, '')
    t.match(err, `ratecard ${argv[0]}: `)
    t.notMatch(err, /^\s+at /m)
  }
  const unknown = await runLine(['sevre'])
  t.equal(unknown.code, 64)
  t.match(unknown.err, 'unknown command "sevre"')
  t.equal((await runLine([])).code, 64)
})

t.test('names its version for error reports', async (t) => {
  t.strictSame(await runLine(['--version']), { code: 0, out: 'ratecard 9.8.7', err: '' })
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  t.strictSame(await runProgram(['--version']), { code: 0, stdout: `ratecard ${version}\n`, stderr: '' })
})

t.test('reads the environment when it is needed, and reports all of its problems together', async (t) => {
  const env = () => {
    throw new EnvError(['PORT must be a port number', 'PAY_TO must be an address'])
  }
  t.equal((await runLine(['serve', '--help'], { env })).code, 0)
  t.equal((await runLine(['serve', '--prot'], { env })).code, 64)
  t.strictSame(await runLine(['check'], { env }), {
    code: 78,
    out: '',
    err: 'environment: PORT must be a port number\nenvironment: PAY_TO must be an address',
  })
})

t.test('reports an error of the machine in one line, and one of the program with its stack', async (t) => {
  const told = await runLine(['odd'], {
    more: [command(() => Promise.reject(new Error('the disk is full')))],
  })
  t.strictSame(told, { code: 1, out: '', err: 'ratecard odd: the disk is full' })
  await t.rejects(
    runLine(['odd'], { more: [command(() => Promise.reject(new TypeError('x is not a function')))] }),
    TypeError,
  )
})
