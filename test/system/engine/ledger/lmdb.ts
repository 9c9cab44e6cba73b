import t from 'tap'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { setImmediate, setTimeout as delay } from 'node:timers/promises'
import { open } from 'lmdb'
import { readAnswer, writeAnswer } from '../../../../src/engine/ledger/answers.ts'
import { sweepAnswers } from '../../../../src/engine/ledger/clean-up.ts'
import { LedgerError } from '../../../../src/engine/base/errors.ts'
import { openCommits } from '../../../../src/engine/ledger/lmdb/lmdb-commits.ts'
import { checkStore } from '../../../../src/engine/ledger/lmdb/lmdb-check.ts'
import { checkFile } from '../../../../src/engine/ledger/lmdb/lmdb-file.ts'
import { FORMAT } from '../../../../src/engine/ledger/record-codec.ts'
import { openLmdbLedger } from '../../../../src/engine/ledger/lmdb/lmdb-ledger.ts'
import { testAnswers } from '../../../contract/answers.ts'
import { testLedger } from '../../../contract/ledger.ts'
import { makeRecord, nextRecord } from '../../../support/payment-records.ts'
import { startWorker } from '../../../support/ledger-process.ts'
import { randomBytes } from '../../../support/random.ts'

const NOBODY = 65_534

function newPlace(t: { teardown(end: () => void): unknown }): string {
  const directory = mkdtempSync(join(tmpdir(), 'ratecard-ledger-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

testLedger('lmdb', newPlace)
testAnswers('lmdb', newPlace)

t.test('lmdb: creates a missing directory of any name, for its owner only', async (t) => {
  const directory = join(newPlace(t), 'data', 'shop.example')
  const ledger = await openLmdbLedger(directory)
  await ledger.close()
  t.equal(statSync(directory).mode & 0o777, 0o700)
})

const WORKS = `this version works with format ${FORMAT}`

t.test('lmdb: refuses a store of another format, leaves it as it is and explains what to do', async (t) => {
  for (const [format, sentence] of [
    [FORMAT + 1, `has format ${FORMAT + 1}, ${WORKS}: start the version that has written it`],
    [2, `has format 2, ${WORKS}: start the version that has written it`],
    ['what?', `has an unknown format, ${WORKS}: start the version`],
  ] as const) {
    const directory = newPlace(t)
    const root = open({ path: directory, encoding: 'json', maxDbs: 8 })
    await root.openDB({ name: 'meta', encoding: 'json' }).put('format', format)
    await root.close()
    const before = readFileSync(join(directory, 'data.mdb'))
    const fault = await openLmdbLedger(directory).catch((caught: unknown) => caught)
    t.ok(fault instanceof LedgerError)
    t.match(fault, { message: `the ledger in ${directory} ${sentence}` })
    t.match(fault, { message: / or move the store aside and start with an empty one$/ })
    t.ok(before.equals(readFileSync(join(directory, 'data.mdb'))), 'not a byte was written')
  }
})

t.test('lmdb: stops writing to a store that a newer version migrates', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  const record = makeRecord('x402:one')
  await ledger.insert(record)
  const worker = startWorker(['lmdb', directory, 'migrate', ''])
  await worker.line()
  worker.begin()
  t.equal(await worker.line(), 'migrated')
  const changes: (() => Promise<unknown>)[] = [
    () => ledger.insert(makeRecord('x402:two')),
    () => ledger.replace(record, nextRecord(record)),
    () => ledger.remove(record),
    () => ledger.addExpiring('name', 'fact', 1),
    () => ledger.lease('name', 'owner', 1, 2),
  ]
  for (const change of changes)
    await t.rejects(change(), { name: 'LedgerError', message: `has format ${FORMAT + 1}, ${WORKS}` })
  t.strictSame(await ledger.get('x402:one'), record)
  await worker.finish()
})

t.test('lmdb: removes expired facts from the store', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  for (let number = 0; number < 1_200; number += 1)
    void ledger.addExpiring(`name ${number % 400}`, `fact ${number}`, 1_000 + number)
  await ledger.addExpiring('name 0', 'last', 9_000)
  t.equal((await ledger.listExpiring('name 0', 1_400)).length, 2)
  t.strictSame(await ledger.listExpiring('name 0', 2_200), ['last'])
  await ledger.close()
  const root = open({ path: directory, encoding: 'json', maxDbs: 12 })
  t.teardown(() => root.close())
  t.equal(root.openDB({ name: 'facts', encoding: 'json' }).getCount(), 1)
  t.equal(root.openDB({ name: 'ends', encoding: 'string' }).getCount(), 1)
})

/**
 * Does to the pointer what a process does that opens the store while another one commits (ITS#9496). Another process
 * has to: this one would lose its locks of the file by closing it. Says the words of eight bytes in it, before.
 */
function pokeLock(directory: string, ...change: readonly [place: number, word: bigint] | []): bigint[] {
  const program = `
    const [file, place, word] = process.argv.slice(1)
    const bytes = fs.readFileSync(file)
    for (let at = 0; at + 8 <= bytes.length; at += 8) console.log(String(bytes.readBigUInt64LE(at)))
    if (place === undefined) process.exit()
    bytes.writeBigUInt64LE(BigInt(word))
    fs.writeSync(fs.openSync(file, 'r+'), bytes, 0, 8, Number(place) * 8)`
  const args = ['-e', program, join(directory, 'lock.mdb'), ...change.map(String)]
  return execFileSync(process.execPath, args, { encoding: 'utf8' }).trim().split('\n').map(BigInt)
}

async function setBack(directory: string, commit: () => Promise<unknown>): Promise<void> {
  const before = pokeLock(directory)
  await commit()
  const after = pokeLock(directory)
  const places = after.flatMap((word, place) => (word > 1n && before[place] === word - 1n ? [place] : []))
  const [place, ...others] = places
  if (place === undefined || others.length > 0)
    throw new Error(`the pointer is one of ${places.length} words`)
  pokeLock(directory, place, (after[place] ?? 0n) - 1n)
}

t.test('lmdb: keeps a payment while another process opens the store', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  await ledger.insert(makeRecord('x402:one'))
  await setBack(directory, () => ledger.insert(makeRecord('x402:two')))
  t.notOk(await ledger.get('x402:two'), 'it is out of sight')
  const writing = ledger.insert(makeRecord('x402:three'))
  const opener = startWorker(['lmdb', directory, 'insert', 'x402:four'])
  await opener.line()
  t.equal(await writing, undefined, 'opening the store puts it right')
  for (const key of ['x402:one', 'x402:two', 'x402:three']) t.ok(await ledger.get(key), key)
  await opener.finish()
})

t.test('lmdb: refuses payments on a damaged store, and explains what to do', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  await ledger.insert(makeRecord('x402:one'))
  await setBack(directory, () => ledger.insert(makeRecord('x402:two')))
  await t.rejects(ledger.insert(makeRecord('x402:three')), {
    name: 'LedgerError',
    message: /open it again, for example with "ratecard payments list"/,
  })
  await ledger.close()
  const again = await openLmdbLedger(directory)
  t.teardown(() => again.close())
  t.equal(await again.insert(makeRecord('x402:three')), undefined)
  for (const key of ['x402:one', 'x402:two', 'x402:three']) t.ok(await again.get(key), key)
})

t.test('lmdb: names a path that is unusable as a directory', async (t) => {
  const file = join(newPlace(t), 'file')
  writeFileSync(file, 'something else')
  for (const directory of [file, join(file, 'ledger')]) {
    const fault = await openLmdbLedger(directory).catch((caught: unknown) => caught)
    t.ok(fault instanceof LedgerError)
    t.match(fault, { message: `the ledger directory ${directory} cannot be used: ` })
  }
  t.equal(readFileSync(file, 'utf8'), 'something else')
})

t.test('lmdb: refuses a file of another program, leaves it as it is and keeps running', async (t) => {
  for (const content of ['x'.repeat(20_000), '\0'.repeat(20_000), 'short']) {
    const directory = newPlace(t)
    writeFileSync(join(directory, 'data.mdb'), content)
    await t.rejects(openLmdbLedger(directory), {
      name: 'LedgerError',
      message: `the ledger directory ${directory} cannot be used: data.mdb is not an LMDB file`,
    })
    t.equal(readFileSync(join(directory, 'data.mdb'), 'utf8'), content)
  }
})

t.test('lmdb: refuses a file that is cut off, leaves it as it is and says what to do', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  const payments = Array.from({ length: 1_500 }, (_, number) => makeRecord(`x402:${number}`))
  await Promise.all(payments.map((record) => ledger.insert(record)))
  await ledger.close()
  const file = join(directory, 'data.mdb')
  const whole = readFileSync(file)
  for (const size of [100, 5_000, Math.floor(whole.length / 2)]) {
    writeFileSync(file, whole.subarray(0, size))
    // It used to end the process with a signal.
    const worker = startWorker(['lmdb', directory, 'insert', 'x402:one'])
    t.match(
      await worker.line(),
      /^LedgerError: the ledger directory .* cannot be used: data\.mdb is cut off \(\d+.* bytes\): restore it from a backup, or move the directory aside/,
    )
    await worker.finish()
    t.equal(statSync(file).size, size)
  }
  writeFileSync(file, whole)
  const again = await openLmdbLedger(directory)
  t.teardown(() => again.close())
  t.strictSame(await again.get('x402:77'), payments[77])
})

t.test('lmdb: finds a file sound at every moment of another process that makes it longer', async (t) => {
  const directory = newPlace(t)
  const worker = startWorker(['lmdb', directory, 'grow', 'x402'])
  t.teardown(() => worker.kill())
  t.equal(await worker.line(), 'ready')
  worker.begin()
  let growing = true
  const grown = worker.line().finally(() => (growing = false))
  for (let checks = 0; growing; checks += 1) {
    checkFile(join(directory, 'data.mdb'))
    if (checks % 100 === 0) await setImmediate()
  }
  t.equal(await grown, 'grown')
  await worker.finish()
  await checkStore(directory)
})

t.test('lmdb: refuses a small store that is cut off, and says what to do', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  await ledger.insert(makeRecord('x402:one'))
  await ledger.close()
  // As many pages are missing as LMDB may leave unwritten at the end of a sound file.
  truncateSync(join(directory, 'data.mdb'), 9_000)
  for (const opening of ['first', 'second'])
    await t.rejects(
      openLmdbLedger(directory),
      {
        name: 'LedgerError',
        message:
          /^the ledger in .* is damaged \(MDB_CORRUPTED.*\): restore it from a backup, or move the directory aside/,
      },
      opening,
    )
})

t.test('lmdb: finds a damaged page, leaves the store as it is and says what to do', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  const payments = Array.from({ length: 300 }, (_, number) => makeRecord(`x402:${number}`))
  await Promise.all(payments.map((record) => ledger.insert(record)))
  await ledger.close()
  const file = join(directory, 'data.mdb')
  const whole = readFileSync(file)
  const pageSize = whole.readUInt32LE(48)
  const pages = whole.length / pageSize
  let found = 0
  for (let page = 2; page < pages; page += 9) {
    const damaged = Buffer.from(whole)
    const bytes = page % 2 === 0 ? new Uint8Array(pageSize) : randomBytes(pageSize)
    damaged.set(bytes, page * pageSize)
    writeFileSync(file, damaged)
    const reason = await checkStore(directory).then(
      () => undefined,
      (fault: unknown) => String(fault),
    )
    if (reason !== undefined) {
      found += 1
      t.match(reason, /^LedgerError: the ledger .* restore it from a backup, or move the directory aside/)
      t.ok(readFileSync(file).equals(damaged))
      continue
    }
    // A page that holds nothing any more.
    const opened = await openLmdbLedger(directory)
    for (const { id } of payments) t.equal((await opened.find(id))?.id, id)
    await opened.close()
  }
  t.ok(found > 2, `${found} damaged pages are in use`)
})

t.test('lmdb: notices deleted files, refuses new payments and finishes the old ones', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  const record = makeRecord('x402:one')
  await ledger.insert(record)
  await ledger.check()
  rmSync(directory, { recursive: true })
  const refused = {
    name: 'LedgerError',
    message:
      /^the ledger in .* has lost its files: they were deleted or replaced: no new payment is taken; .* "ratecard ledger reopen"$/,
  }
  const calls: (() => Promise<unknown>)[] = [
    () => ledger.check(),
    () => ledger.insert(makeRecord('x402:two')),
    () => ledger.addExpiring('a', 'b', 1),
    () => ledger.listExpiring('a', 1),
  ]
  for (const call of calls) await t.rejects(call(), refused)
  t.equal(await ledger.replace(record, nextRecord(record, { state: 'fulfilled' })), true)
})

t.test('lmdb: goes on with other files once an operator has reopened them, and not before', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  const [one, two] = [makeRecord('x402:one'), makeRecord('x402:two')]
  await ledger.insert(one)
  for (const [losses, record] of [one, two].entries()) {
    rmSync(directory, { recursive: true })
    const operator = startWorker(['lmdb', directory, 'reopen', ''])
    t.equal(await operator.line(), 'ready')
    await t.rejects(ledger.check(), { message: /has lost its files/ }, 'an empty store is there')
    t.equal(await ledger.replace(record, nextRecord(record)), true, 'existing payments are finished')
    operator.begin()
    t.equal(await operator.line(), 'reopened')
    const calls = [
      ledger.insert(two),
      ledger.check(),
      ledger.addExpiring('a', 'b', 10),
      ledger.listExpiring('a', 1),
    ]
    await Promise.all(calls)
    t.strictSame(await ledger.get(two.key), two, `after loss ${losses + 1}`)
    t.equal(await ledger.get(one.key), undefined)
    await operator.finish()
  }
})

t.test('lmdb: stays closed when the mark of an earlier reopening comes back with other files', async (t) => {
  const directory = newPlace(t)
  const first = await openLmdbLedger(directory)
  await first.reopen()
  await first.close()
  const backup = newPlace(t)
  cpSync(directory, backup, { recursive: true })
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  rmSync(directory, { recursive: true })
  cpSync(backup, directory, { recursive: true })
  // A file system may give the number of a deleted file to a new one.
  const { dev, ino } = statSync(join(directory, 'data.mdb'), { bigint: true })
  const [, at = ''] = readFileSync(join(directory, 'reopened'), 'utf8').split(' ')
  writeFileSync(join(directory, 'reopened'), `${dev}:${ino} ${at}`)
  await t.rejects(ledger.check(), { message: /has lost its files/ })
})

t.test('lmdb: ends a lease of a clock that was an hour ahead after its length', async (t) => {
  const ledger = await openLmdbLedger(newPlace(t))
  t.teardown(() => ledger.close())
  const now = 1_800_000_000_000
  await ledger.lease('signer', 'ahead', now + 3_600_000, now + 3_615_000)
  t.equal(await ledger.lease('signer', 'me', now, now + 15_000), undefined)
  t.equal(await ledger.lease('signer', 'me', now + 14_999, now + 20_000), undefined)
  t.equal((await ledger.lease('signer', 'me', now + 15_000, now + 20_000))?.fencingToken, 2)
})

t.test('lmdb: stores large answers in files for their owner only, named after payments', async (t) => {
  const directory = newPlace(t)
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  const { answers } = ledger
  const record = makeRecord('x402:one')
  const { id } = record
  const text = 'a'.repeat(20_000)
  const large = { kind: 'text', type: 'text/plain', text } as const
  const reference = await writeAnswer(answers, record, large)
  const file = join(directory, 'answers', id.slice(4, 5), `${id}.1`)
  t.equal(readFileSync(file, 'utf8'), text)
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(statSync(join(directory, 'answers')).mode & 0o777, 0o700)
  const body = Buffer.from(text)
  for (const bad of ['../../etc/passwd', 'pay_', `pay_${'/'.repeat(22)}`, `${id}/..`, `${id}\n`, '']) {
    const answer = { id: bad, kind: 'json', mediaType: 'a/b', attempt: 1, expiresAt: 0 } as const
    await t.rejects(answers.write(answer, body), RangeError, bad)
  }
  writeFileSync(file, text.replace('a', 'b'))
  t.equal(await answers.read(id, reference), undefined, 'changed')
  writeFileSync(file, text)
  t.not(await answers.read(id, reference), undefined)
  truncateSync(file, 0)
  t.equal(await answers.read(id, reference), undefined, 'torn')
  t.equal(await sweepAnswers(ledger, Date.now()), 0, 'its record may be on its way')
  const later = Date.now() + 2 * 3_600_000
  await ledger.insert({ ...record, answer: reference })
  writeFileSync(`${file}.tmp`, 'left behind')
  await writeAnswer(answers, makeRecord('x402:stale'), large)
  t.equal(await sweepAnswers(ledger, later), 2, 'what belongs to no payment goes')
  t.ok(statSync(file))
})

t.test('lmdb: stores small answers in its database, and deletes those without a payment', async (t) => {
  const directory = newPlace(t)
  const first = await openLmdbLedger(directory)
  const [kept, stale] = [makeRecord('x402:kept'), makeRecord('x402:stale')]
  const reference = await writeAnswer(first.answers, kept, { kind: 'json', value: 1 })
  const forgotten = await writeAnswer(first.answers, stale, { kind: 'json', value: 2 })
  await first.insert({ ...kept, answer: reference })
  t.notOk(existsSync(join(directory, 'answers')))
  await first.close()
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  t.equal(await sweepAnswers(ledger, Date.now()), 0, 'its record may be on its way')
  t.equal(await sweepAnswers(ledger, Date.now() + 2 * 3_600_000), 1)
  t.strictSame(await readAnswer(ledger.answers, { ...kept, answer: reference }), { kind: 'json', value: 1 })
  t.equal(await readAnswer(ledger.answers, { ...stale, answer: forgotten }), undefined)
})

t.test('lmdb: stores what joins a commit with it and before it, and exactly once', async (t) => {
  const root = open({ path: newPlace(t), encoding: 'json', maxDbs: 1 })
  t.teardown(() => root.close())
  let isRefused = false
  const { change, join: joinNext } = openCommits(root, () => {
    if (isRefused) throw new Error('not now')
  })
  const made: string[] = []
  const make = (what: string) => () => void made.push(what)
  const joined = joinNext(60_000, make('joined'))
  await change(make('changed'))
  await joined
  t.strictSame(made.splice(0), ['joined', 'changed'])

  await joinNext(1, make('alone'))
  t.strictSame(made.splice(0), ['alone'], 'a moment later nothing has come')

  isRefused = true
  const refused = joinNext(60_000, make('kept'))
  refused.catch(() => undefined)
  await t.rejects(change(make('refused')), /not now/)
  await t.rejects(refused, /not now/)
  isRefused = false
  await change(make('next'))
  t.strictSame(made.splice(0), ['kept', 'next'], 'it is made with the next commit')

  const beside = joinNext(60_000, make('beside'))
  const faulty = change(() => {
    throw new Error('a bug')
  })
  await t.rejects(faulty, /a bug/)
  await beside
  await change(make('later'))
  t.strictSame(made, ['beside', 'later'], 'a fault of the change undoes nothing of it')
})

t.test('lmdb: shows an answer that is on its way, and stores it with its record', async (t) => {
  const directory = newPlace(t)
  const first = await openLmdbLedger(directory)
  const record = makeRecord('x402:answered')
  const answer = await writeAnswer(first.answers, record, { kind: 'json', value: 1 })
  t.strictSame(await readAnswer(first.answers, { ...record, answer }), { kind: 'json', value: 1 })
  await first.insert({ ...record, answer })
  await first.close()
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  const stored = await ledger.get(record.key)
  t.strictSame(stored && (await readAnswer(ledger.answers, stored)), { kind: 'json', value: 1 })
})

t.test('lmdb: opens an empty file as a new store', async (t) => {
  const directory = newPlace(t)
  writeFileSync(join(directory, 'data.mdb'), '')
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  t.equal(await ledger.insert(makeRecord('x402:one')), undefined)
})

t.test('lmdb: refuses a second opening in one process', async (t) => {
  const directory = newPlace(t)
  const message = `the ledger directory ${directory} cannot be used: it is open in this process already`
  const [ledger, ...others] = await Promise.allSettled([1, 2, 3].map(() => openLmdbLedger(directory)))
  for (const each of others) t.match(each, { status: 'rejected', reason: { name: 'LedgerError', message } })
  if (ledger?.status !== 'fulfilled') throw new Error('the first opening was refused')
  await t.rejects(openLmdbLedger(join(directory, '..', basename(directory))), { name: 'LedgerError' })
  t.equal(await ledger.value.insert(makeRecord('x402:one')), undefined, 'the first one works on')
  await ledger.value.close()
  const again = await openLmdbLedger(directory)
  t.teardown(() => again.close())
  t.not(await again.get('x402:one'), undefined)
})

t.test('lmdb: opens a refused store once it is repaired', async (t) => {
  const directory = newPlace(t)
  writeFileSync(join(directory, 'data.mdb'), 'something else')
  await t.rejects(openLmdbLedger(directory))
  writeFileSync(join(directory, 'data.mdb'), '')
  const ledger = await openLmdbLedger(directory)
  await ledger.close()
})

t.test('lmdb: refuses a change after closing, and keeps running', async (t) => {
  const ledger = await openLmdbLedger(newPlace(t))
  await ledger.close()
  await t.rejects(ledger.insert(makeRecord('x402:one')), { name: 'LedgerError' })
  await t.rejects(ledger.get('x402:one'))
})

t.test('lmdb: tries no change again once it is closed', async (t) => {
  const root = open({ path: newPlace(t), encoding: 'json', maxDbs: 1 })
  t.teardown(() => root.close())
  let tries = 0
  const { join: joinNext, close } = openCommits(root, () => {
    tries += 1
    throw new Error('gone')
  })
  const waiting = joinNext(60_000, () => undefined)
  waiting.catch(() => undefined)
  await close()
  await t.rejects(waiting, /gone/)
  await t.rejects(
    joinNext(1, () => undefined),
    /gone/,
  )
  await delay(50)
  t.equal(tries, 2)
})

t.test('lmdb: names a directory that is read-only', async (t) => {
  const parent = newPlace(t)
  const directory = join(parent, 'ledger')
  mkdirSync(directory)
  chmodSync(parent, 0o755)
  chmodSync(directory, 0o555)
  // The superuser may write everywhere, so that another user has to try.
  const worker = startWorker(
    ['lmdb', directory, 'insert', 'x402:one'],
    process.getuid?.() === 0 ? { uid: NOBODY } : {},
  )
  t.match(await worker.line(), `LedgerError: the ledger directory ${directory} cannot be used: `)
  await worker.finish()
})

t.test('lmdb: refuses a change that the disk has no space for, and keeps running', async (t) => {
  const directory = newPlace(t)
  const worker = startWorker(['lmdb', directory, 'fill', 'x402'], { largestFile: 2_000 })
  t.equal(await worker.line(), 'ready')
  worker.begin()
  const sentence = 'LedgerError: the ledger could not store a change: '
  t.match(await worker.line(), `stored some, then ${sentence}`)
  t.equal(await worker.line(), 'small: stored')
  await worker.finish()
  t.equal(await worker.line(), 'closed')
  const ledger = await openLmdbLedger(directory)
  t.teardown(() => ledger.close())
  t.equal((await ledger.get('x402:0'))?.authorizationHash.length, 300_000, 'what was stored is there')
  t.not(await ledger.get('x402'), undefined)
})

t.test('lmdb: measures the five commits of a paid call', async (t) => {
  const ledger = await openLmdbLedger(newPlace(t))
  t.teardown(() => ledger.close())
  let sold = 0
  const sell = async (): Promise<void> => {
    let record = makeRecord(`x402:${(sold += 1)}`)
    await ledger.insert(record)
    for (const state of ['fulfilled', 'settling', 'settled', 'sent'] as const) {
      const next = nextRecord(record, { state })
      if (!(await ledger.replace(record, next))) throw new Error('a change was lost')
      record = next
    }
  }
  const began = performance.now()
  for (let call = 0; call < 50; call += 1) await sell()
  const between = performance.now()
  await Promise.all(
    Array.from({ length: 32 }, async () => {
      for (let call = 0; call < 10; call += 1) await sell()
    }),
  )
  const one = (50 * 5_000) / (between - began)
  const many = (320 * 5_000) / (performance.now() - between)
  t.comment(`${Math.round(one)} commits a second one after the other, ${Math.round(many)} with 32 at once`)
})
