import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setInterval } from 'node:timers'
import t, { type Test } from 'tap'
import { hold } from '../../../../src/service/memory/hold.ts'
import { nodeCommand } from '../../../support/server.ts'

function newFile(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-lock-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, 'lock')
}

t.test('refuses a second process on the same files', async (t) => {
  const file = newFile(t)
  const first = await hold(file)
  t.ok(first.held())
  await t.rejects(hold(file), {
    name: 'StoreRefusal',
    message: new RegExp(`\\(${process.pid}\\).*DATABASE_URL.*${file}`),
  })
  first.release()
  t.notOk(existsSync(file))
  const second = await hold(file)
  second.release()
})

const MODULE = new URL('../../../../src/service/memory/hold.ts', import.meta.url).href
const HOLDER = `const { hold } = await import(${JSON.stringify(MODULE)})
try { await hold(process.argv[1]); process.stdout.write('held'); setInterval(() => {}, 1000) }
catch (fault) { process.stdout.write(fault.name); process.exit() }`

/** Another process that tries; resolves to what it says, and goes on holding until it is killed. */
async function rival(t: Test, file: string) {
  const child = spawn(...nodeCommand(['--import', 'tsx', '--input-type=module', '-e', HOLDER, file]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, said: String(said) }
}

t.test('starts again after a power cut, one server at a time', async (t) => {
  const file = newFile(t)
  const { child, said } = await rival(t, file)
  t.equal(said, 'held')
  await t.rejects(hold(file), { name: 'StoreRefusal' })
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
  const rivals = await Promise.all(Array.from({ length: 4 }, () => rival(t, file)))
  t.strictSame(rivals.map((each) => each.said).sort(), [
    'StoreRefusal',
    'StoreRefusal',
    'StoreRefusal',
    'held',
  ])
})

t.test('tells a running server in another container from a dead one', async (t) => {
  const file = newFile(t)
  // The number of a process that lives here, too.
  const foreign = `${process.pid} 12345 another-boot/pid:[1]\n`
  writeFileSync(file, foreign)
  const beat = setInterval(() => utimesSync(file, new Date(), new Date()), 500)
  await t.rejects(hold(file), { name: 'StoreRefusal' })
  clearInterval(beat)
  t.equal(readFileSync(file, 'utf8'), foreign)
  const taken = await hold(file)
  t.ok(taken.held())
  writeFileSync(file, foreign)
  t.notOk(taken.held(), 'and who was taken over stops')
  taken.release()
  t.equal(readFileSync(file, 'utf8'), foreign)
})

t.test('starts although another program has the old process id', async (t) => {
  const file = newFile(t)
  const own = await hold(file)
  const [pid, , place] = readFileSync(file, 'utf8').trim().split(' ')
  own.release()
  writeFileSync(file, `${pid} 1 ${place}\n`)
  const taken = await hold(file)
  t.ok(taken.held())
  taken.release()
})
