/** Clients of MCP and the client of scheme upto, as they come from the registry, buy calls of a metered tool. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { at } from '../support/documents.ts'
import { addressOf } from '../support/payment.ts'
import { openShop } from '../support/shop.ts'
import { BUYERS } from './support/tool-buyers.ts'

const catalog = join(t.testdir(), 'catalog.yaml')
writeFileSync(
  catalog,
  `catalog: 1
service: { name: Counted work, version: '1.0.0' }
payments: { currency: USD, x402: { networks: [base], timeout: 60s } }
mcp_servers: { tools: { title: Counted work as tools } }
routes:
  /paid/work:
    tool: tools.work
    price: { metered: [{ value_of: /n, price: 0.001 }], ceiling: 0.1 }
    summary: Works where the test says how
    parameters:
      n: { type: integer, default: 1, minimum: 0, maximum: 100 }
    example: { n: 1 }
`,
)
const shop = await openShop(async () => ({ CATALOG: catalog }))
t.teardown(() => shop.close())

/** That of Cloudflare signs by exact alone. */
const SDKS = Object.entries(BUYERS).filter(([name]) => name.startsWith('SDK'))

for (const [place, [name, open]] of SDKS.entries())
  t.test(`charges a buyer who pays by ${name} and the client of upto what its call has used`, async (t) => {
    const before = await shop.onchain.received(shop.payTo)
    const n = 7 + place
    const key = await shop.wallet()
    await shop.onchain.approvePermit2(addressOf(key), 2n ** 255n)
    const buyer = await open(new URL('/mcp/tools', shop.url), key)
    t.teardown(() => buyer.close())
    t.strictSame(await buyer.list(), ['work'])
    const result = await buyer.buy('work', { n })
    t.not(result['isError'], true, JSON.stringify(result))
    t.match(at(result, 'structuredContent'), { n })
    const amount = BigInt(n) * 1_000n
    t.match(at(result, '_meta', 'x402/payment-response'), {
      success: true,
      amount: String(amount),
      payer: addressOf(key),
      transaction: /^0x[0-9a-f]{64}$/,
    })
    t.strictSame((await shop.onchain.received(shop.payTo)).slice(before.length), [amount])
  })

t.equal(SDKS.length, 3)
