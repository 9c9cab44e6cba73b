/**
 * Metered work settled by a facilitator: that of the SDK, behind HTTP, which verifies the ceiling and settles the amount.
 * For an operator without an endpoint, who has the facilitator’s word only, and for one with.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openFacilitator, type FacilitatorServer } from '../../../support/facilitator.ts'
import { readProblem } from '../../../support/http.ts'
import { addressOf, challengeOf, readHeader, send, type Hex } from '../../../support/payment.ts'
import { runProgram } from '../../../support/server.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { until } from '../../../support/until.ts'
import { signPermit, uptoFetch } from '../../../support/upto.ts'

const MUCH = 2n ** 255n
const CEILING = 100_000n

const CATALOG = `catalog: 1
service: { name: Counted work, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base], timeout: 60s } }
routes:
  /paid/work:
    price: { metered: [{ value_of: /n, price: 0.001 }], ceiling: 0.1 }
    summary: Works where the test says how
    parameters:
      n: { type: integer, default: 1, minimum: 0, maximum: 100 }
    example: { n: 1 }
`

type Operator = 'without an endpoint' | 'with an endpoint'

interface Place {
  readonly shop: Shop
  readonly facilitator: FacilitatorServer
}

const folder = mkdtempSync(join(tmpdir(), 'ratecard-catalog-'))
writeFileSync(join(folder, 'catalog.yaml'), CATALOG)

async function open(operator: Operator): Promise<Place> {
  let facilitator: FacilitatorServer | undefined
  const shop = await openShop(async (chain) => {
    facilitator = await openFacilitator(chain)
    return {
      CATALOG: join(folder, 'catalog.yaml'),
      SETTLER_PRIVATE_KEY: '',
      FACILITATOR_URL: facilitator.url,
      FACILITATOR_TOKEN: facilitator.token,
      ...(operator === 'without an endpoint' ? { RPC_URL_8453: '' } : {}),
    }
  })
  if (facilitator === undefined) throw new Error('no facilitator')
  await offering(shop)
  return { shop, facilitator }
}

/** What the facilitator settles is known shortly after the start. */
function offering({ url }: Shop): Promise<true> {
  return until('the route is for sale', async () => {
    const response = await fetch(`${url}/paid/work`)
    await response.body?.cancel()
    return response.status === 402
  })
}

const places: Place[] = []
t.teardown(async () => {
  await Promise.all(places.flatMap(({ shop, facilitator }) => [shop.close(), facilitator.close()]))
  rmSync(folder, { recursive: true })
})

/** A new wallet with tokens, all of which Permit2 may move. */
async function wallet({ shop }: Place): Promise<Hex> {
  const key = await shop.wallet()
  await shop.onchain.approvePermit2(addressOf(key), MUCH)
  return key
}

for (const operator of ['without an endpoint', 'with an endpoint'] as const) {
  const place = await open(operator)
  places.push(place)
  const { shop, facilitator } = place
  const work = (n: number): string => `${shop.url}/paid/work?n=${n}`
  const received = (): Promise<readonly bigint[]> => shop.onchain.received(shop.payTo)
  const signed = async (): Promise<string> =>
    (await signPermit(await challengeOf(work(1)), await wallet(place))).header
  /** The answer to a payment, once it is known what has become of it. */
  const bought = async (url: string, header: string): Promise<Response> => {
    let answer = await send(url, header)
    await until('the outcome is known', async () => {
      if (answer.status !== 503) return true
      answer = await send(url, header)
      return answer.status !== 503
    })
    return answer
  }

  t.test(`${operator}: names the account that the facilitator lists`, async (t) => {
    const { accepts, extensions } = await challengeOf(work(1))
    t.match(accepts[0], {
      scheme: 'upto',
      amount: CEILING.toString(),
      extra: { facilitatorAddress: facilitator.address },
    })
    t.match(extensions, { eip2612GasSponsoring: { info: { version: '1' } } })
  })

  t.test(`${operator}: has the ceiling verified and the amount settled`, async (t) => {
    const [verifies, settles, before] = [
      facilitator.verifies().length,
      facilitator.settles().length,
      (await received()).length,
    ]
    const answer = await uptoFetch(await wallet(place))(work(7))
    t.equal(answer.status, 200)
    t.match(readHeader(answer, 'payment-response'), { success: true, amount: '7000' })
    t.strictSame((await received()).slice(before), [7_000n])
    const amounts = (asked: ReturnType<FacilitatorServer['settles']>): unknown[] =>
      asked.map(({ paymentRequirements: { amount } }) => amount)
    t.strictSame(amounts(facilitator.verifies().slice(verifies)), [CEILING.toString()])
    t.strictSame(amounts(facilitator.settles().slice(settles)), ['7000'])
  })

  t.test(`${operator}: has the approval of a wallet without gas sent along`, async (t) => {
    const before = (await received()).length
    const answer = await uptoFetch(await shop.wallet(), shop.chain.rpcUrl)(work(3))
    t.equal(answer.status, 200)
    t.strictSame((await received()).slice(before), [3_000n])
  })

  t.test(`${operator}: asks nobody to settle work that costs nothing`, async (t) => {
    const [settles, before] = [facilitator.settles().length, (await received()).length]
    const answer = await send(work(0), await signed())
    t.equal(answer.status, 200)
    t.match(readHeader(answer, 'payment-response'), { success: true, amount: '0' })
    t.equal(facilitator.settles().length, settles)
    t.equal((await received()).length, before)
  })

  t.test(`${operator}: refuses uncharged what the facilitator refuses`, async (t) => {
    const { runs } = shop.upstream
    const [worked, before] = [runs(), (await received()).length]
    const refused = async (t: Test, key: Hex, code: string): Promise<void> => {
      const { header } = await signPermit(await challengeOf(work(1)), key)
      const response = await send(work(1), header)
      t.equal(response.status, 402)
      t.match(await readProblem(response), { code, charged: 'no' })
    }
    await refused(t, await shop.wallet(), 'permit2_allowance_required')
    const poor = await shop.wallet(CEILING - 1n)
    await shop.onchain.approvePermit2(addressOf(poor), MUCH)
    await refused(t, poor, 'permit2_insufficient_balance')
    facilitator.set({ verify: { invalid: 'permit2_simulation_failed' } })
    await refused(t, await shop.wallet(), 'permit2_simulation_failed')
    facilitator.set({})
    t.equal(runs(), worked)
    t.equal((await received()).length, before)
  })

  for (const way of ['cut_after', 'html_after', 'pending_once'] as const)
    t.test(`${operator}: charges once when its answer is lost after it has settled: ${way}`, async (t) => {
      const before = (await received()).length
      const header = await signed()
      facilitator.set({ settle: way })
      const first = await send(work(4), header)
      facilitator.set({})
      const answer = first.status === 200 ? first : await bought(work(4), header)
      t.equal(answer.status, 200)
      t.match(readHeader(answer, 'payment-response'), { success: true, amount: '4000' })
      t.strictSame((await received()).slice(before), [4_000n])
    })

  t.test(`${operator}: has its last request carried out after a kill`, async (t) => {
    const before = (await received()).length
    const header = await signed()
    facilitator.set({ settle: 'cut' })
    const asked = facilitator.settles().length
    const first = send(work(6), header).catch(() => undefined)
    await until('it was asked', () => facilitator.settles().length > asked)
    await shop.restart()
    await first
    facilitator.set({})
    await offering(shop)
    const answer = await bought(work(6), header)
    t.equal(answer.status, 200)
    t.match(readHeader(answer, 'payment-response'), { amount: '6000' })
    t.strictSame((await received()).slice(before), [6_000n])
  })

  if (operator === 'without an endpoint')
    t.test('shows another amount than was stated as a difference', async (t) => {
      const before = (await received()).length
      facilitator.set({ settle: { moves: 1_000n, states: 'what was asked' } })
      const answer = await send(work(5), await signed())
      facilitator.set({})
      t.match(readHeader(answer, 'payment-response'), { amount: '5000' })
      t.strictSame((await received()).slice(before), [1_000n])
      const { dataDir } = shop.server
      const env = { PAY_TO: shop.payTo, RPC_URL_8453: shop.node.url }
      const ran = await runProgram(['payments', 'reconcile', '--json', '--data-dir', dataDir], env)
      t.not(ran.code, 0, ran.stderr)
      const { differences } = JSON.parse(ran.stdout).networks[0]
      t.equal(differences.length, 1, ran.stdout)
      t.match(differences[0], { kind: 'differs', fields: ['amount'] })
    })

  t.test(
    `${operator}: states what was moved, and gives nothing more to a facilitator that moved another amount`,
    async (t) => {
      const before = (await received()).length
      const states = operator === 'with an endpoint' ? 'what was asked' : 'the truth'
      facilitator.set({ settle: { moves: 9_000n, states } })
      const answer = await send(work(5), await signed())
      facilitator.set({})
      t.equal(answer.status, 200)
      t.match(readHeader(answer, 'payment-response'), { success: true, amount: '9000' })
      t.strictSame((await received()).slice(before), [9_000n])
      await shop.server.said(/facilitator .* 9000 instead of 5000 atomic units in 0x[0-9a-f]{64}/)

      const settles = facilitator.settles().length
      const next = await send(work(5), await signed())
      t.equal(next.status, 503)
      t.match(await readProblem(next), { code: 'chain_unavailable', charged: 'no' })
      t.equal(facilitator.settles().length, settles)
    },
  )
}

t.test('sells fixed and metered prices by upto where the facilitator lists upto alone', async (t) => {
  const catalog = join(folder, 'both.yaml')
  const fixed = `  /paid/other:
    price: 0.01
    handler: work
    summary: The same at a fixed price
    parameters:
      n: { type: integer, default: 1, minimum: 0, maximum: 100 }
    example: { n: 1 }
`
  writeFileSync(
    catalog,
    CATALOG.replace('networks: [base],', 'networks: [base], schemes: [exact, upto],') + fixed,
  )
  let facilitator: FacilitatorServer | undefined
  const shop = await openShop(async (chain) => {
    facilitator = await openFacilitator(chain)
    facilitator.support(['upto'])
    return {
      CATALOG: catalog,
      SETTLER_PRIVATE_KEY: '',
      RPC_URL_8453: '',
      FACILITATOR_URL: facilitator.url,
      FACILITATOR_TOKEN: facilitator.token,
    }
  })
  if (facilitator === undefined) throw new Error('no facilitator')
  const place = { shop, facilitator }
  places.push(place)
  await offering(shop)
  await shop.server.said(/is paid by upto alone: no facilitator lists exact there/)
  for (const [path, amount] of [
    ['/paid/work?n=2', 2_000n],
    ['/paid/other?n=2', 10_000n],
  ] as const) {
    const { accepts } = await challengeOf(shop.url + path)
    t.strictSame(
      accepts.map(({ scheme }) => scheme),
      ['upto'],
    )
    const answer = await uptoFetch(await wallet(place))(shop.url + path)
    t.equal(answer.status, 200)
    t.equal((await shop.onchain.received(shop.payTo)).at(-1), amount)
  }
})
