import t from 'tap'
import { MULTICALL3 } from 'ratecard/chains/evm/multicall'
import { addressOf, challengeOf, randomKey, send, sign, type Hex } from '../../../support/payment.ts'
import { runProgram } from '../../../support/server.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

type Row = Readonly<Record<string, string>>

const BUYERS: readonly Hex[] = Array.from({ length: 10 }, () => randomKey())
/** What names a payment or its transaction, or depends on the time; an answer counts as sent two seconds later. */
const OWN = [
  'payment',
  'state',
  'taken_at',
  'settled_at',
  'payee',
  'transaction',
  'gas_cost_wei',
  'fee',
  'transaction_page',
  'payments_in_transaction',
]

/** Ten buyers pay at once, after one who has let the server find its batch contract, or none. */
async function sell(shop: Shop): Promise<void> {
  const work = `${shop.url}/paid/work`
  const first = await shop.wallet()
  t.equal((await send(`${work}?n=99`, (await sign(await challengeOf(work), first)).header)).status, 200)
  const payments: string[] = []
  for (const key of BUYERS) {
    await shop.chain.mint(addressOf(key), 10_000n)
    payments.push((await sign(await challengeOf(work), key)).header)
  }
  const answers = await Promise.all(payments.map((header, place) => send(`${work}?n=${place + 1}`, header)))
  t.strictSame(new Set(answers.map(({ status }) => status)), new Set([200]))
}

async function run<T>({ server, node, payTo }: Shop, ...args: string[]): Promise<T> {
  const env = { PAY_TO: payTo, RPC_URL_8453: node.url }
  const ran = await runProgram(['payments', ...args, '--data-dir', server.dataDir], env)
  t.equal(ran.code, 0, ran.stderr)
  return JSON.parse(ran.stdout) as T
}

const exported = (shop: Shop): Promise<Row[]> => run<Row[]>(shop, 'export', '--json')

function common(rows: readonly Row[]): unknown[] {
  const buyers = new Set(BUYERS.map(addressOf).map((each) => each.toLowerCase()))
  return rows
    .filter(({ payer = '' }) => buyers.has(payer.toLowerCase()))
    .map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !OWN.includes(name))))
    .toSorted((one, other) => String(one['payer']).localeCompare(String(other['payer'])))
}

t.test('records payments of a batch like single ones, with their shares of the gas', async (t) => {
  const [together, alone] = await Promise.all([openShop(), openShop()])
  t.teardown(() => Promise.all([together.close(), alone.close()]))
  await alone.chain.setCode(MULTICALL3, '0x')
  for (const shop of [together, alone]) await sell(shop)
  const [batched, single] = [await exported(together), await exported(alone)]
  t.equal(common(batched).length, BUYERS.length)
  t.strictSame(common(batched), common(single))
  t.strictSame(new Set(single.map((row) => row['payments_in_transaction'])), new Set(['1']))
  const byTransaction = groups(batched)
  t.ok(byTransaction.size < batched.length, `${batched.length} in ${byTransaction.size}`)
  for (const rows of byTransaction.values())
    for (const row of rows) t.equal(row['payments_in_transaction'], String(rows.length))
  const costs = [batched, single].map((rows) =>
    rows.reduce((sum, row) => sum + BigInt(row['gas_cost_wei'] ?? 0), 0n),
  )
  t.ok((costs[0] ?? 0n) < (costs[1] ?? 0n))
  for (const shop of [together, alone]) {
    const { networks } = await run<{ networks: readonly Row[] }>(shop, 'reconcile', '--json')
    t.match(networks, [{ status: 'checked', agreed: BUYERS.length + 1, differences: [] }])
  }
  const [shared] = batched.filter((row) => row['payments_in_transaction'] !== '1')
  t.match(await run(together, 'show', shared?.['payment'] ?? '', '--json'), {
    gas_cost_wei: shared?.['gas_cost_wei'],
    dispatch: {
      kind: 'own',
      payments_in_transaction: Number(shared?.['payments_in_transaction']),
      can_be_sent_again: true,
    },
  })
})

function groups(rows: readonly Row[]): ReadonlyMap<string, readonly Row[]> {
  const found = new Map<string, Row[]>()
  for (const row of rows) {
    const { transaction = '' } = row
    found.set(transaction, [...(found.get(transaction) ?? []), row])
  }
  return found
}
