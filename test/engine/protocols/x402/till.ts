import t from 'tap'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import { createTills, type TillSettings } from '../../../../src/engine/protocols/x402/till.ts'
import { randomKey } from '../../../support/payment.ts'
import { PAY_TO } from '../../../support/x402.ts'

const unused = (): never => {
  throw new Error('nothing may be asked of anybody before the first payment')
}
const ledger: Ledger = {
  name: 'unused',
  get: unused,
  find: unused,
  insert: unused,
  replace: unused,
  remove: unused,
  entries: unused,
  lease: unused,
  release: unused,
  close: unused,
}

function tillsWith(settings: Partial<TillSettings>) {
  return createTills({
    payTo: PAY_TO,
    rpcUrls: { 8453: 'https://node.example' },
    signerKeys: [randomKey()],
    ledger,
    owner: 'one',
    fetcher: unused,
    now: unused,
    sleep: unused,
    report: unused,
    ...settings,
  })
}

const x402 = { networks: ['eip155:137', 'eip155:8453'], timeout: 60_000, limits: {} }

t.test(
  'only networks that can settle are offered, in the order of the catalog, without asking them',
  async (t) => {
    const some = tillsWith({})
    t.strictSame(
      some.of(x402).map(({ network }) => network.id),
      ['eip155:8453'],
    )
    t.strictSame(
      some.closed(x402).map(({ network, missing }) => [network.id, missing]),
      [['eip155:137', ['RPC_URL_137']]],
    )
    const all = tillsWith({
      rpcUrls: { 8453: 'https://a.example', 137: 'https://b.example', 10: 'https://c.example' },
    })
    t.strictSame(
      all.of(x402).map(({ network }) => network.id),
      ['eip155:137', 'eip155:8453'],
    )
    const none = tillsWith({ signerKeys: [], rpcUrls: {} })
    t.strictSame(none.of(x402), [])
    t.strictSame(
      none.closed(x402).map(({ missing }) => missing),
      [
        ['RPC_URL_137', 'SETTLER_PRIVATE_KEY'],
        ['RPC_URL_8453', 'SETTLER_PRIVATE_KEY'],
      ],
    )
  },
)

t.test(
  'a payee written in any letters is shown with its checksum, which strict clients ask for (EIP-55)',
  async (t) => {
    for (const payTo of [PAY_TO, PAY_TO.toLowerCase(), `0x${PAY_TO.slice(2).toUpperCase()}`]) {
      t.equal(tillsWith({ payTo }).of(x402)[0]?.payTo, PAY_TO)
    }
  },
)
