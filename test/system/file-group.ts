import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { nodeCommand } from '../support/server.ts'
import { until } from '../support/until.ts'

const LOADER = fileURLToPath(new URL('../support/tsx.mjs', import.meta.url))
const file = (name: string): string => fileURLToPath(new URL(`../fixtures/group/${name}`, import.meta.url))

interface Ran {
  readonly end: number | NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

async function run(name: string, stop?: NodeJS.Signals): Promise<Ran> {
  const child = spawn(...nodeCommand([`--import=${LOADER}`, file(name)]), {
    // Nothing of the runner of this test.
    env: { PATH: process.env['PATH'] },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stopped = stop === undefined ? undefined : once(child.stderr, 'data').then(() => child.kill(stop))
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  await stopped
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  return { end: child.exitCode ?? child.signalCode, stdout, stderr }
}

t.test('runs every file of a group, however another one ends', async (t) => {
  const { end, stdout, stderr } = await run('group.ts')
  const results = Array.from(stdout.matchAll(/^(ok|not ok) \d+ - (\S.*?)(?: # .*)?$/gm))
  t.strictSame(
    results.map(([, result, name]) => `${result}: ${name}`),
    [
      'not ok: test/fixtures/group/failing.ts',
      'not ok: test/fixtures/group/rejecting.ts',
      'not ok: test/fixtures/group/hanging.ts',
      'ok: test/fixtures/group/throwing-late.ts',
      'ok: test/fixtures/group/waiting.ts',
      'not ok: an error outside of all running tests, while test/fixtures/group/waiting.ts ran',
      'not ok: an error outside of all running tests, while test/fixtures/group/waiting.ts ran',
      'ok: test/fixtures/group/passing.ts',
    ],
  )
  t.match(stdout, /ok 2 - passes after a failure/)
  t.match(stdout, /thrown: .*\n?.*Error: thrown after its test/)
  t.match(stdout, /thrown: .*\n?.*Error: rejected after its test/)
  t.equal(end, 1)
  const torn = Array.from(
    stderr.matchAll(/^(\S+) is torn down(.*)$/gm),
    ([, name, after]) => `${name}${after}`,
  )
  t.strictSame(torn, ['failing.ts', 'rejecting.ts', 'hanging.ts', 'passing.ts after passes'])
})

t.test('names the files that a process has not run to their end', async (t) => {
  const { end, stdout, stderr } = await run('exiting-group.ts')
  t.match(stdout, /not ok 1 - test\/fixtures\/group\/exiting\.ts/)
  t.match(
    stderr,
    'the process ended before these files did: test/fixtures/group/exiting.ts, test/fixtures/group/passing.ts',
  )
  t.equal(end, 1)
})

t.test('ends a group that has left something running, and says what', async (t) => {
  const { end, stdout, stderr } = await run('leaving-group.ts')
  t.match(stdout, /^ok 1 - test\/fixtures\/group\/leaving\.ts/m)
  t.match(stderr, /still running after the last file: .*ProcessWrap/)
  t.equal(end, 1)
})

t.test('gives a file that is run by itself the time that the runner gives it', async (t) => {
  const { end, stderr } = await run('limit.ts')
  t.equal(stderr.trim(), '600000')
  t.equal(end, 0)
})

t.test('ends everything that a file has started when its run is ended', async (t) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGALRM'] as const) {
    const { end, stdout, stderr } = await run('starting.ts', signal)
    t.equal(end, 1)
    t.match(stdout, /not ok 1 - starts processes and waits/)
    const started = Array.from(stderr.matchAll(/^(\d+) (\d+)$/gm)).flatMap(([, ...pids]) => pids.map(Number))
    t.equal(started.length, 2)
    for (const pid of started) await until(`${pid} has ended`, () => !isAlive(pid))
  }
})

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
