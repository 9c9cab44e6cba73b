import { Challenge } from 'mppx'
import { parseUnits } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Account, Actions, P256 } from 'viem/tempo'
import t, { type Test } from 'tap'
import { readProblem } from '../../../support/http.ts'
import { openMppService } from '../../../support/mpp.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import {
  clientOf,
  mppChallengeOf,
  PATH_USD,
  signTempo,
  stockPayer,
  type TransactionFaults,
} from '../../../support/tempo.ts'

const PRICE = 5_000n
/** The highest fee of the transactions below, in atomic units of the token that pays it. */
const FEE = 60_000n
const GAS = { gas: parseUnits('2', 6), maxFeePerGas: parseUnits('30', 9) }

const service = await openMppService()
t.teardown(() => service.close())

let last = 0
const nextUrl = (): string => {
  last = (last % 100) + 1
  return `${service.url}/paid/work?n=${last}`
}

interface Burst {
  readonly answers: readonly Response[]
  readonly charged: number
  readonly runs: number
}

/** Sends all payments at once; `sign` makes the Authorization of each. */
async function burst(
  payer: Hex,
  count: number,
  sign: (url: string, place: number) => Promise<string>,
): Promise<Burst> {
  const calls = await Promise.all(
    Array.from({ length: count }, async (_, place) => {
      const url = nextUrl()
      return { url, authorization: await sign(url, place) }
    }),
  )
  const before = service.upstream.runs()
  const answers = await Promise.all(
    calls.map(({ url, authorization }) => fetch(url, { headers: { authorization } })),
  )
  const charged = (await service.chain.received(service.recipient, PATH_USD, payer)).length
  return { answers, charged, runs: service.upstream.runs() - before }
}

function burstOf(key: Hex, count: number, faults: (place: number) => TransactionFaults): Promise<Burst> {
  return burst(addressOf(key), count, async (url, place) =>
    signTempo(service.chain.rpcUrl, key, await mppChallengeOf(url), { ...GAS, ...faults(place) }),
  )
}

/** Every call was answered and charged, or refused uncharged before the work. */
async function isFair(t: Test, { answers, charged, runs }: Burst, detail: RegExp): Promise<void> {
  const [good, bad] = [answers.filter(({ ok }) => ok), answers.filter(({ ok }) => !ok)]
  t.equal(charged, good.length, 'each answer was charged')
  t.equal(runs, good.length, 'no work for the others')
  for (const answer of good) await answer.body?.cancel()
  for (const answer of bad) {
    t.equal(answer.status, 402)
    t.match(await readProblem(answer), { code: 'verification_failed', charged: 'no', detail })
  }
}

const SHORT = /does not cover|holds less|needs the amount and the fee/

t.test('answers as many of 40 payments at once as the wallet has money for', async (t) => {
  const key = await service.chain.wallet({ pathUsd: 3n * PRICE })
  const done = await burstOf(key, 40, (place) => ({ nonceKey: BigInt(place + 1) }))
  await isFair(t, done, SHORT)
  t.equal(done.charged, 3)
})

t.test('counts the fees of payments that are under way', async (t) => {
  const [same, other] = [
    await service.chain.wallet({ pathUsd: 2n * (PRICE + FEE) + PRICE }),
    await service.chain.wallet({ alphaUsd: 2n * FEE + PRICE }),
  ]
  const paidInSame = await burstOf(same, 20, () => ({ feeToken: PATH_USD }))
  await isFair(t, paidInSame, SHORT)
  t.ok(paidInSame.charged >= 2, 'what a fee did not use pays for more')
  await isFair(t, await burstOf(other, 20, () => ({})), SHORT)
})

t.test('refuses 40 payments whose nonces cannot be executed before the work', async (t) => {
  const key = await service.chain.wallet()
  const ahead = await burstOf(key, 40, (place) => ({
    nonceKey: BigInt(place + 100),
    nonce: 1 + (place % 16),
  }))
  await isFair(t, ahead, /its nonce is \d+, and the next one of its account is 0/)
  t.equal(ahead.runs, 0)
})

t.test('answers one of 40 payments with the same nonce', async (t) => {
  const key = await service.chain.wallet()
  const same = await burstOf(key, 40, () => ({ nonceKey: 7n }))
  await isFair(t, same, /nonce has been used|has to be executed first/)
  t.equal(same.charged, 1)
})

t.test('answers payments of one sequence in their order, whichever arrives first', async (t) => {
  const key = await service.chain.wallet()
  const inOrder = await burstOf(key, 3, (place) => ({ nonceKey: 0n, nonce: 2 - place }))
  await isFair(t, inOrder, /never/)
  t.equal(inOrder.charged, 3)
})

t.test('keeps a transaction with further calls apart from others of its payer', async (t) => {
  const key = await service.chain.wallet({ pathUsd: 5n * PRICE })
  const sweep = { to: addressOf(randomKey()), amount: PRICE }
  for (const [first, second] of [
    [{ sweep }, {}],
    [{}, { sweep }],
  ] as const) {
    const url = [nextUrl(), nextUrl()] as const
    const [one, other] = await Promise.all([
      signTempo(service.chain.rpcUrl, key, await mppChallengeOf(url[0]), first),
      signTempo(service.chain.rpcUrl, key, await mppChallengeOf(url[1]), second),
    ])
    let finish = (): void => undefined
    const finished = new Promise<void>((resolve) => (finish = resolve))
    const running = new Promise<void>((resolve) =>
      service.upstream.during(() => {
        resolve()
        return finished
      }),
    )
    const answer = fetch(url[0], { headers: { authorization: one } })
    await running
    const refused = await fetch(url[1], { headers: { authorization: other } })
    t.match(await readProblem(refused), { charged: 'no', detail: /has to be executed first/ })
    finish()
    t.equal((await answer).status, 200)
  }
  service.upstream.during(async () => {})
  const charged = await service.chain.received(service.recipient, PATH_USD, addressOf(key))
  t.strictSame(charged, [PRICE, PRICE])
})

t.test('keeps payments of an access key within what it may spend', async (t) => {
  const root = Account.fromSecp256k1(randomKey())
  await service.chain.fund(root.address)
  const client = clientOf(service.chain.rpcUrl, root)
  const access = Account.fromP256(P256.randomPrivateKey(), { access: root })
  const expiry = Math.floor(Date.now() / 1000) + 3_600
  const limits = [{ token: PATH_USD as Hex, limit: 60_000n }]
  await Actions.accessKey.authorizeSync(client, { accessKey: access, expiry, limits, gas: 5_000_000n })
  const payer = stockPayer(service.chain.rpcUrl, access)
  const done = await burst(root.address, 20, async (url) => {
    const headers = { 'WWW-Authenticate': Challenge.serialize(await mppChallengeOf(url)) }
    return payer.createCredential(new Response('', { status: 402, headers }))
  })
  await isFair(t, done, SHORT)
  t.ok(done.charged >= 1)
  t.ok(done.charged < 12, 'fees count as spent')
})

t.test('answers and charges 30 payments at once of a wallet with the money for them', async (t) => {
  const key = await service.chain.wallet({ pathUsd: 30n * PRICE })
  const done = await burstOf(key, 30, () => ({}))
  await isFair(t, done, /never/)
  t.equal(done.charged, 30)
  t.strictSame(
    await service.chain.received(service.recipient, PATH_USD, addressOf(key)),
    Array(30).fill(PRICE),
  )
})

t.test('answers 30 calls at once of the stock client', async (t) => {
  const key = await service.chain.wallet()
  const payer = stockPayer(service.chain.rpcUrl, privateKeyToAccount(key))
  const before = service.upstream.runs()
  const answers = await Promise.all(Array.from({ length: 30 }, () => payer.fetch(nextUrl())))
  t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(service.upstream.runs() - before, 30)
  t.equal((await service.chain.received(service.recipient, PATH_USD, addressOf(key))).length, 30)
})
