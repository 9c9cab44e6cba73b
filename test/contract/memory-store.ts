import t, { type Test } from 'tap'
import { Failure, InvalidParameter } from '../../src/engine/handler.ts'
import type { Database } from '../../src/service/memory/database.ts'
import type { Embedder } from '../../src/service/memory/embedder.ts'
import { hashEmbedder } from '../../src/service/memory/hash-embedder.ts'
import { MemoryStore, QUOTA, type Draft, type Question } from '../../src/service/memory/memory-store.ts'
import { migrate } from '../../src/service/memory/migrations.ts'
import { sentenceEmbedder } from '../../src/service/memory/sentence-embedder.ts'
import { Upkeep } from '../../src/service/memory/upkeep.ts'
import { findSentenceModel } from '../../src/service/sentences/sentence-model.ts'
import { KINDS, readMemories, readNotes, score } from '../bench/retrieval/measure.ts'

const AT = new Date('2026-11-22T10:00:00.000Z')
const patient = new AbortController().signal

/** Same memories, same questions: what one engine has found has to be what the other finds. */
export interface Findings {
  readonly places: readonly (readonly number[])[]
  readonly scores: readonly (readonly number[])[]
}

/** What every engine must do; `open` gives an empty database. */
export function testMemoryStore(
  name: string,
  open: (t: Test) => Promise<Database>,
  compare: (t: Test, findings: Findings) => void,
): void {
  t.test(`stores memories in ${name}`, async (t) => {
    const database = await open(t)
    await Promise.all([migrate(database), migrate(database), migrate(database)])
    const store = new MemoryStore(database, hashEmbedder)
    let [wallets, payments] = [0, 0]
    const newWallet = (): string => `eip155:0x${String((wallets += 1)).padStart(40, '0')}`
    const newPayment = (): string => `payment-${(payments += 1)}`
    const draft = (wallet: string, text: string, more: Partial<Draft> = {}): Draft => ({
      wallet,
      text,
      tags: [],
      key: undefined,
      ...more,
    })
    const question = (wallet: string, query: string, more: Partial<Question> = {}): Question => ({
      wallet,
      query,
      most: 5,
      tags: [],
      since: undefined,
      ...more,
    })
    const remember = async (wallet: string, text: string, more: Partial<Draft> = {}, at = AT) => {
      const payment = newPayment()
      const written = await store.prepare(payment, draft(wallet, text, more), at, patient)
      await store.commit(payment)
      return written.id
    }
    const found = async (wallet: string, query: string, more: Partial<Question> = {}) =>
      (await store.search(question(wallet, query, more), patient)).map(({ text }) => text)
    const kept = async (wallet: string) => (await store.usage(wallet)).memories

    t.test('hides a memory until it is paid for', async (t) => {
      const wallet = newWallet()
      const payment = newPayment()
      await store.prepare(payment, draft(wallet, 'The key is under the mat'), AT, patient)
      t.strictSame(await found(wallet, 'key under the mat'), [])
      t.strictSame((await store.page(wallet, '0', 1000)).memories, [])
      t.equal(await kept(wallet), 0)
      await store.abort(payment)
      await store.commit(payment)
      t.equal(await kept(wallet), 0, 'and is gone when the payment fails')
    })

    t.test('keeps a paid memory exactly once', async (t) => {
      const wallet = newWallet()
      const payment = newPayment()
      const text = 'The key is under the mat'
      const written = await Promise.all(
        Array.from({ length: 20 }, () =>
          store.prepare(payment, draft(wallet, text, { tags: ['home'] }), AT, patient),
        ),
      )
      t.equal(new Set(written.map(({ id }) => id)).size, 1)
      await Promise.all([store.commit(payment), store.commit(payment), store.commit(payment)])
      await store.abort(payment)
      const again = await store.prepare(payment, draft(wallet, text), AT, patient)
      await store.commit(payment)
      t.equal(again.id, written[0]?.id)
      const [hit, ...others] = await store.search(question(wallet, 'where is the key'), patient)
      t.strictSame(others, [])
      t.match(hit, { id: again.id, text, tags: ['home'], createdAt: AT })
      t.ok(hit !== undefined && hit.score > 0.7 && hit.score <= 1, 'the only telling word is there')
    })

    t.test('stores a call repeated with its idempotency key once', async (t) => {
      const wallet = newWallet()
      const [lost, first, second] = [newPayment(), newPayment(), newPayment()]
      const once = draft(wallet, 'Write this once', { key: 'k-1' })
      await store.prepare(lost, once, AT, patient)
      const one = await store.prepare(first, once, AT, patient)
      const two = await store.prepare(second, once, AT, patient)
      await store.abort(lost)
      await store.commit(first)
      await store.commit(second)
      t.equal(await kept(wallet), 1)
      t.equal(one.id, two.id)
      const later = await store.prepare(newPayment(), once, new Date(), patient)
      t.strictSame(later, { id: one.id, createdAt: AT, bytes: one.bytes, repeated: true })
      await t.rejects(
        store.prepare(newPayment(), draft(wallet, 'Write something else', { key: 'k-1' }), AT, patient),
        new InvalidParameter('idempotency_key', 'idempotency_key was used for another text of this wallet'),
        'nothing is lost in silence',
      )
      const stranger = newWallet()
      t.not(await remember(stranger, 'Write this once', { key: 'k-1' }), one.id, 'a key is a wallet’s own')
    })

    t.test('keeps wallets apart in reads, counts and deletes', async (t) => {
      const [mine, yours] = [newWallet(), newWallet()]
      const id = await remember(mine, 'My secret is blue')
      await remember(yours, 'Your secret is green')
      t.strictSame(await found(yours, 'My secret is blue'), ['Your secret is green'])
      t.strictSame(
        (await store.page(yours, '0', 1000)).memories.map(({ text }) => text),
        ['Your secret is green'],
      )
      t.equal(await store.delete(yours, id), 0)
      t.equal(await store.clear(yours), 1)
      t.strictSame([await kept(mine), await kept(yours)], [1, 0])
      t.equal(await store.delete(mine, id), 1)
      t.equal(await kept(mine), 0)
    })

    t.test('searches within its filters', async (t) => {
      const wallet = newWallet()
      await remember(wallet, 'Red apples', { tags: ['fruit', 'red'] }, new Date('2026-01-01T00:00:00.000Z'))
      await remember(wallet, 'Green apples', { tags: ['fruit'] })
      await remember(wallet, 'Red apples and cars', { tags: ['red'] })
      t.strictSame(await found(wallet, 'red apples', { tags: ['fruit', 'red'] }), ['Red apples'])
      const recent = await found(wallet, 'red apples', { since: new Date('2026-06-01') })
      t.strictSame(recent, ['Red apples and cars', 'Green apples'])
      t.strictSame(await found(wallet, 'red apples', { most: 1 }), ['Red apples'])
    })

    t.test('finds text in any script, and text of symbols alone', async (t) => {
      const wallet = newWallet()
      const texts = [
        '😀😀 🚀',
        'Ελληνικά γράμματα',
        'ภาษาไทยง่าย',
        'हिन्दी में लिखा',
        '한국어를 배웁니다',
        'العَرَبِيَّة',
      ]
      for (const text of texts) await remember(wallet, text)
      for (const text of texts) t.equal((await found(wallet, text))[0], text)
      t.equal((await found(wallet, '한국어'))[0], '한국어를 배웁니다')
      t.equal((await found(wallet, 'العربية'))[0], 'العَرَبِيَّة')
    })

    t.test('exports every memory exactly once', async (t) => {
      const wallet = newWallet()
      const texts = Array.from({ length: 7 }, (_, number) => `Note ${number} ${'x'.repeat(300)}`)
      for (const text of texts) await remember(wallet, text)
      const told: string[] = []
      let pages = 0
      for (let next: string | undefined = '0'; next !== undefined; pages += 1) {
        const page = await store.page(wallet, next, 1000)
        told.push(...page.memories.map(({ text }) => text))
        t.equal(page.remaining, texts.length - told.length)
        next = page.next
      }
      t.strictSame(told, texts)
      t.ok(pages >= 3)
      t.equal(
        (await store.page(wallet, '0', 1)).memories.length,
        1,
        'one that is larger than a page still comes',
      )
    })

    t.test('limits what a wallet stores', async (t) => {
      const wallet = newWallet()
      await remember(wallet, 'The first of many')
      await database.query('update memories set bytes = $2 where wallet = $1', [wallet, QUOTA.bytes - 100])
      await remember(wallet, 'Fits')
      await t.rejects(store.prepare(newPayment(), draft(wallet, 'x'.repeat(100)), AT, patient), {
        code: 'quota_exceeded',
      })
      t.equal(await kept(wallet), 2)
    })

    t.test('removes writes whose caller has left or whose embedder fails', async (t) => {
      const wallet = newWallet()
      const payment = newPayment()
      const gone = AbortSignal.abort()
      await t.rejects(store.prepare(payment, draft(wallet, 'Too late'), AT, gone))
      await store.commit(payment)
      const failing: Embedder = {
        name: 'failing',
        semantic: true,
        languages: undefined,
        floor: 0.1,
        weight: 0.6,
        embed: () =>
          Promise.reject(new Failure('source_timeout', 'The embedding model did not answer in time')),
      }
      const without = new MemoryStore(database, failing)
      await t.rejects(without.prepare(payment, draft(wallet, 'Never'), AT, patient), {
        code: 'source_timeout',
      })
      await store.commit(payment)
      t.equal(await kept(wallet), 0)
    })

    t.test('finds memories after a change of the embedder', async (t) => {
      const wallet = newWallet()
      await remember(wallet, 'The harbour opens at dawn')
      const flat: Embedder = {
        name: 'flat',
        semantic: true,
        languages: undefined,
        floor: 0.1,
        weight: 0.6,
        embed: async (texts) => texts.map((text) => Float32Array.of(text.includes('port') ? 0.8 : 1, 0.6, 0)),
      }
      const other = new MemoryStore(database, flat)
      const ask = async (query: string) => (await other.search(question(wallet, query), patient)).length
      t.equal(await ask('harbour'), 1, 'its words are still known')
      t.equal(await ask('zportz'), 0)
      const done: number[] = []
      await new Upkeep(database, flat).reindex((number) => done.push(number))
      t.equal(await ask('zportz'), 1)
      t.ok((done.at(-1) ?? 0) > 0)
      await new Upkeep(database, hashEmbedder).reindex(() => undefined)
      t.equal((await found(wallet, 'harbor opening'))[0], 'The harbour opens at dawn')
    })

    t.test('forgets a wallet on every chain', async (t) => {
      const address = '0x00000000000000000000000000000000000ABCDE'
      const [bare, contract] = [`eip155:${address.toLowerCase()}`, `eip155:8453:${address.toLowerCase()}`]
      const bystander = newWallet()
      await remember(bare, 'One')
      await remember(contract, 'Two')
      await remember(bystander, 'Three')
      await store.prepare(newPayment(), draft(bare, 'Pending'), AT, patient)
      const upkeep = new Upkeep(database, hashEmbedder)
      const told = []
      for await (const record of upkeep.records(address)) told.push(record)
      t.strictSame(
        told.map(({ wallet, text }) => [wallet, text]),
        [
          [bare, 'One'],
          [contract, 'Two'],
        ],
      )
      t.equal(await upkeep.forget(address), 2)
      const left = await database.query('select payment from pending_memories where wallet = $1', [bare])
      t.strictSame([left.length, await kept(bare), await kept(contract), await kept(bystander)], [0, 0, 0, 1])
    })

    t.test(
      'finds what a wallet has stored by its words and by related English words, and nothing else',
      async (t) => {
        const wallet = newWallet()
        const memories = readMemories()
        for (const { text } of memories) await remember(wallet, text)
        for (const nothing of ['zzzz qqqq', 'xkcd wvut'])
          t.strictSame(await found(wallet, nothing), [], `${nothing} is like nothing`)
        const car = newWallet()
        await remember(car, 'The car is parked behind the station')
        t.strictSame(await found(car, 'automobile'), ['The car is parked behind the station'])
        const texts = memories.map(({ text }) => text)
        const findings: { places: number[][]; scores: number[][] } = { places: [], scores: [] }
        for (const kind of KINDS) {
          const places = []
          // Every fourth: of all domains and languages, in a quarter of the time.
          for (const [meant, memory] of memories.entries()) {
            if (meant % 4 > 0) continue
            const hits = await store.search(question(wallet, memory[kind]), patient)
            const order = hits.map(({ text }) => texts.indexOf(text))
            findings.places.push(order)
            findings.scores.push(hits.map((hit) => hit.score))
            places.push(order.includes(meant) ? order.indexOf(meant) + 1 : Infinity)
          }
          const reached = score(places)
          t.comment(`${kind}: ${JSON.stringify(reached)}`)
          if (kind === 'lexical') t.ok(reached['R@1'] >= 0.97, kind)
          if (kind === 'morphology') t.ok(reached['R@1'] >= 0.9, kind)
          if (kind === 'paraphrase') t.ok(reached['R@5'] >= 0.15, kind)
        }
        compare(t, findings)
      },
    )

    t.test(
      'finds English by other words of the same meaning, and other languages by their words',
      async (t) => {
        const model = findSentenceModel()
        if (model === undefined) throw new Error('the packages of the sentence model are not installed')
        const embedder = sentenceEmbedder(model)
        const meaning = new MemoryStore(database, embedder)
        const earlier = newWallet()
        await remember(earlier, 'The harbour opens at dawn')
        t.equal(
          (await meaning.search(question(earlier, 'harbour'), patient)).length,
          1,
          'of another embedder',
        )
        const wallet = newWallet()
        const memories = readMemories()
        const notes = readNotes()
        const write = async (texts: readonly string[]): Promise<void> => {
          for (const text of texts) {
            const payment = newPayment()
            await meaning.prepare(payment, draft(wallet, text), AT, patient)
            await meaning.commit(payment)
          }
        }
        const reached = async (pairs: readonly (readonly [query: string, text: string])[]) => {
          const places = []
          for (const [query, text] of pairs) {
            const hits = await meaning.search(question(wallet, query), patient)
            const at = hits.findIndex((hit) => hit.text === text)
            places.push(at < 0 ? Infinity : at + 1)
          }
          return score(places)
        }
        await write(memories.map(({ text }) => text))
        for (const nothing of ['zzzz qqqq', 'xkcd wvut'])
          t.strictSame(await meaning.search(question(wallet, nothing), patient), [], nothing)
        const english = memories.filter(({ language }) => language === 'en')
        const others = memories.filter(({ language }, place) => language !== 'en' && place % 4 === 0)
        t.ok((await reached(english.map((each) => [each.paraphrase, each.text])))['R@5'] >= 0.9)
        t.ok((await reached(others.map((each) => [each.morphology, each.text])))['R@1'] >= 0.9)
        await write(notes.map(({ text }) => text))
        t.ok((await reached(notes.map((each) => [each.paraphrase, each.text])))['R@5'] >= 0.9)
      },
    )

    t.test('refuses a store that a newer version has written', async (t) => {
      await database.run('insert into memory_schema values (99)')
      await t.rejects(migrate(database), { name: 'StoreRefusal', message: /newer/ })
    })
  })
}
