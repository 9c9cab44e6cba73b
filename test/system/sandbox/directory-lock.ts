import t from 'tap'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { lock } from '../../../src/sandbox/directory-lock.ts'

const gone = () => spawnSync(process.execPath, ['-e', '']).pid

t.test('gives a directory to one process at a time', async (t) => {
  const file = join(t.testdir(), 'lock')
  const release = lock(file)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.throws(() => lock(file), new RegExp(`Another sandbox uses this directory \\(process ${process.pid}\\)`))
  release()
  t.equal(existsSync(file), false)
  lock(file)()
})

t.test('takes over the lock of a dead process, also when its id is reused by this one', async (t) => {
  for (const stale of [`${gone()} 1\n`, `${process.pid} 1\n`]) {
    const file = join(t.testdir({ lock: stale }), 'lock')
    const release = lock(file)
    t.match(readFileSync(file, 'utf8'), new RegExp(`^${process.pid} `))
    t.not(readFileSync(file, 'utf8'), stale)
    release()
  }
})

t.test('respects an unreadable lock, and names the way out', async (t) => {
  const file = join(t.testdir({ lock: 'what is this' }), 'lock')
  t.throws(() => lock(file), new RegExp(`delete ${file}`))
  t.equal(readFileSync(file, 'utf8'), 'what is this')
})

t.test('keeps the lock of the next holder at a late release', async (t) => {
  const file = join(t.testdir(), 'lock')
  const release = lock(file)
  writeFileSync(file, '1 1\n')
  release()
  t.equal(readFileSync(file, 'utf8'), '1 1\n')
})
