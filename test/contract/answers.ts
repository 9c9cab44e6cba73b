import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import {
  AnswerTooLargeError,
  LARGEST_ANSWER_BYTES,
  readAnswer,
  writeAnswer,
} from '../../src/engine/ledger/answers.ts'
import type { AnswerReference, StoredAnswer } from '../../src/engine/ledger/payment-record.ts'
import { paymentId } from '../../src/engine/ledger/payment-lifecycle.ts'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import { openLedger } from '../fixtures/ledger/open.ts'
import { makeRecord } from '../support/payment-records.ts'

const HOUR_MS = 3_600_000

/** What every answer store must do: it comes with the ledger called `name`, whose stores are at new places. */
export function testAnswers(name: string, newPlace: (t: Test) => string): void {
  const openNew = async (t: Test): Promise<Ledger> => {
    const ledger = await openLedger(name, newPlace(t))
    t.teardown(() => ledger.close())
    return ledger
  }
  const id = paymentId('x402:one')
  const answer = {
    id,
    kind: 'text',
    mediaType: 'application/pdf',
    attempt: 1,
    expiresAt: Date.now() + HOUR_MS,
  } as const

  t.test(`${name}: gives back every kind of answer as it was stored`, async (t) => {
    const { answers } = await openNew(t)
    const stored: StoredAnswer[] = [
      { kind: 'json', value: { a: [1, null, true, 'é🪙"\\\n', { b: {} }], c: [0.1, -1e300, 2 ** 53] } },
      { kind: 'json', value: null },
      { kind: 'text', type: 'text/csv; charset=utf-8', text: 'a,b\r\né,🪙' },
      { kind: 'text', type: 'text/plain', text: '' },
    ]
    for (const [number, each] of stored.entries()) {
      const record = makeRecord(`x402:${number}`)
      const reference = await writeAnswer(answers, record, each)
      t.strictSame(await readAnswer(answers, { ...record, answer: reference }), each)
    }
    t.equal(await readAnswer(answers, makeRecord('x402:none')), undefined)
  })

  t.test(`${name}: streams ten megabytes in and out, in pieces of any size`, async (t) => {
    const { answers } = await openNew(t)
    const reference = await answers.write(answer, pieces(LARGEST_ANSWER_BYTES, 70_001))
    t.match(reference, { kind: 'text', mediaType: 'application/pdf', size: LARGEST_ANSWER_BYTES, attempt: 1 })
    let [size, largest] = [0, 0]
    for await (const piece of (await answers.read(id, reference)) ?? []) {
      largest = Math.max(largest, piece.length)
      for (const at of [0, piece.length - 1]) if (piece[at] !== (size + at) % 251) t.fail(`byte ${size + at}`)
      size += piece.length
    }
    t.equal(size, LARGEST_ANSWER_BYTES)
    t.ok(largest <= 1024 * 1024, 'and never as a whole')
  })

  t.test(
    `${name}: refuses a larger answer, and one that breaks off, and keeps nothing of them`,
    async (t) => {
      const { answers } = await openNew(t)
      await t.rejects(
        answers.write(answer, pieces(LARGEST_ANSWER_BYTES + 1, 1024 * 1024)),
        AnswerTooLargeError,
      )
      const broken = async function* () {
        yield* pieces(600_000, 100_000)
        throw new Error('the upstream is gone')
      }
      await t.rejects(answers.write(answer, broken()), { message: 'the upstream is gone' })
      const reference = { ...answer, size: 600_000, digest: 'unknown' }
      t.equal(await answers.read(id, reference), undefined)
      t.equal(await answers.sweep(Date.now() + 2 * HOUR_MS, async () => false), 0)
    },
  )

  t.test(`${name}: takes an answer that differs from its record for missing`, async (t) => {
    const { answers } = await openNew(t)
    const reference = await answers.write(answer, pieces(600_000, 100_000))
    const other = paymentId('x402:other')
    const others = await answers.write({ ...answer, id: other }, pieces(600_000, 100_000))
    t.not(reference.digest, others.digest, 'the same bytes for another payment are another answer')
    const wrong: Partial<AnswerReference>[] = [
      { digest: others.digest },
      { size: 599_999 },
      { size: 600_001 },
      { attempt: 2 },
    ]
    for (const each of wrong) t.equal(await answers.read(id, { ...reference, ...each }), undefined)
    t.not(await answers.read(id, reference), undefined)
    const later = await answers.write({ ...answer, attempt: 2 }, Buffer.from('later'))
    t.not(await answers.read(id, reference), undefined, 'a later attempt does not write over it')
    await answers.delete(id, reference)
    await answers.delete(id, reference)
    t.equal(await answers.read(id, reference), undefined)
    t.not(await answers.read(id, later), undefined, 'and is not deleted with it')
  })

  t.test(`${name}: keeps answers of any size whole, and gives back none that is deleted`, async (t) => {
    const { answers } = await openNew(t)
    for (const size of [1, 16_384, 16_385, 262_144, 262_145]) {
      const record = makeRecord(`x402:${size}`)
      const bytes = new Uint8Array(await buffer(pieces(size, 100_000)))
      const reference = await writeAnswer(answers, record, { kind: 'bytes', type: 'image/png', bytes })
      const read = async (): Promise<StoredAnswer | undefined> =>
        readAnswer(answers, { ...record, answer: reference })
      t.match(await read(), { kind: 'bytes', bytes: Buffer.from(bytes) }, `${size} bytes`)
      await answers.delete(record.id, reference)
      t.equal(await read(), undefined, `${size} bytes`)
    }
  })

  t.test(`${name}: replaces an answer as a whole by the same attempt`, async (t) => {
    const { answers } = await openNew(t)
    const first = await answers.write(answer, pieces(600_000, 100_000))
    const second = await answers.write(answer, Buffer.from('short'))
    t.equal(await answers.read(id, first), undefined)
    t.strictSame(await readAnswer(answers, { id, answer: second }), {
      kind: 'text',
      type: 'application/pdf',
      text: 'short',
    })
    const third = await answers.write(answer, pieces(600_000, 100_000))
    t.equal(await answers.read(id, second), undefined)
    t.not(await answers.read(id, third), undefined)
  })
}

/** Bytes that tell their place. */
async function* pieces(size: number, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < size; at += length)
    yield Uint8Array.from({ length: Math.min(length, size - at) }, (_, place) => (at + place) % 251)
}
