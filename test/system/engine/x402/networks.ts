import t from 'tap'
import { VARIABLES } from '../../../../src/engine/app/option-names.ts'
import { httpOver, systemRuntime } from '../../../../src/engine/base/runtime.ts'
import type { Ledger } from '../../../../src/engine/ledger/ledger.ts'
import type { NetworkSettings } from '../../../../src/engine/x402/exact-evm/evm-network.ts'
import { openEvmNetworks } from '../../../../src/engine/x402/exact-evm/evm-networks.ts'
import {
  openFacilitators,
  type OpenFacilitators,
} from '../../../../src/engine/x402/facilitators/open-facilitators.ts'
import { USUAL_CHANNELS } from '../../../../src/engine/catalog/catalog.ts'
import { startBase } from '../../../support/base-chain.ts'
import { openRpcProxy } from '../../../support/rpc-proxy.ts'
import { randomKey } from '../../../support/payment.ts'
import { PAY_TO } from '../../../support/shipped-catalog.ts'

const unused = (): never => {
  throw new Error('nothing may be asked of anybody before the first payment')
}
const ledger: Ledger = {
  name: 'unused',
  answers: { write: unused, read: unused, delete: unused, sweep: unused },
  states: { get: unused, list: unused },
  now: unused,
  check: unused,
  get: unused,
  find: unused,
  insert: unused,
  commit: unused,
  replace: unused,
  replaceSoon: unused,
  remove: unused,
  records: unused,
  search: unused,
  totals: { read: unused, rebuild: unused },
  counts: { add: unused, read: unused },
  due: unused,
  undelivered: unused,
  addExpiring: unused,
  addWithinLimit: unused,
  listExpiring: unused,
  lease: unused,
  release: unused,
  reopen: unused,
  close: unused,
}

type TestSettings = Omit<NetworkSettings, keyof OpenFacilitators> & Parameters<typeof openFacilitators>[0]

function tillsWith(settings: Partial<TestSettings>) {
  const all = {
    payTo: PAY_TO,
    rpcUrls: { 8453: 'https://node.example' },
    signerKeys: [randomKey()],
    facilitators: [],
    names: VARIABLES,
    ledger,
    owner: 'one',
    http: unused,
    caller: unused,
    now: unused,
    random: unused,
    sleep: unused,
    every: unused,
    deadline: systemRuntime.deadline,
    report: unused,
    ...settings,
  }
  return openEvmNetworks({ ...all, ...openFacilitators(all) })
}

const x402 = {
  networks: ['eip155:137', 'eip155:8453'],
  timeout: 60_000,
  v1: true,
  schemes: ['exact'],
  channels: USUAL_CHANNELS,
  limits: {},
  testnet: false,
}

t.test(
  'offers exactly the networks that can settle, in the order of the catalog, without a request to them',
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

const facilitators = [{ url: 'https://pay.example', token: 'secret' }]

t.test(
  'sells through a facilitator on every network without a key, and states the consequences',
  async (t) => {
    const tills = tillsWith({ signerKeys: [], facilitators })
    t.strictSame(
      tills.of(x402).map(({ network }) => network.id),
      ['eip155:137', 'eip155:8453'],
    )
    t.strictSame(tills.closed(x402), [])
    t.strictSame(tills.cautions(x402), [
      'Polygon (eip155:137) is settled by a facilitator alone: without RPC_URL_137 an unknown settlement stays unknown',
    ])
    t.strictSame(
      tillsWith({ rpcUrls: {}, facilitators }).cautions(x402).length,
      2,
      'a key alone settles nowhere',
    )
    t.strictSame(tillsWith({}).cautions(x402), [], 'nor is anything to be said without a facilitator')
  },
)

/** What the operator reads when every facilitator answers this to GET /supported. */
async function surveyed(answer: () => Promise<Response>, settings: Partial<TestSettings> = {}) {
  const told: string[] = []
  const asked: string[] = []
  const http = httpOver(async (input, init) => {
    asked.push(`${typeof input === 'string' ? input : ''} ${JSON.stringify(init?.headers)}`)
    return answer()
  })
  const tills = tillsWith({ signerKeys: [], facilitators, http, ...settings })
  await tills.survey(x402, (line) => told.push(line))
  return { told, asked, offered: tills.of(x402).map(({ network }) => network.chainId) }
}

const kinds = (...networks: string[]) =>
  Response.json({ kinds: networks.map((network) => ({ x402Version: 2, scheme: 'exact', network })) })

t.test('warns at start of a network without a way to settle', async (t) => {
  const { told, asked, offered } = await surveyed(async () => kinds('eip155:8453'))
  t.match(told, [/^x402: Polygon \(eip155:137\) cannot be offered: no facilitator settles there/])
  t.strictSame(offered, [8453], 'and no buyer is offered it')
  t.match(asked, [/^https:\/\/pay\.example\/supported .*Bearer secret/])
  t.strictSame((await surveyed(async () => kinds('eip155:*'))).told, [], 'a pattern covers its networks')
  const older = await surveyed(async () =>
    Response.json({
      kinds: ['base', 'polygon', 'eip155:137'].map((network) => ({
        x402Version: 1,
        scheme: 'exact',
        network,
      })),
    }),
  )
  t.match(older.told, [/Polygon/], 'version 1 has a name for Base, and none that all know for Polygon')
  t.strictSame(older.offered, [8453])
  const own = await surveyed(unused, { signerKeys: [randomKey()], rpcUrls: { 8453: 'x', 137: 'x' } })
  t.match(own, { told: [], asked: [] }, 'a process that settles alone asks nobody')
})

t.test('names an unreachable facilitator, and leaves its networks alone', async (t) => {
  const cases: readonly (readonly [() => Promise<Response>, RegExp])[] = [
    [
      async () => new Response('no', { status: 401 }),
      /^x402: facilitator pay\.example refuses us \(401\): check its credentials/,
    ],
    [
      async () => new Response('no', { status: 404 }),
      /^x402: facilitator pay\.example has no \/supported \(404\)/,
    ],
    [
      async () => new Response('<h1>502</h1>', { status: 502 }),
      /^x402: facilitator pay\.example does not answer/,
    ],
    [() => Promise.reject(new TypeError('fetch failed')), /^x402: facilitator pay\.example does not answer/],
  ]
  for (const [answer, line] of cases) {
    const { told, offered } = await surveyed(answer)
    t.equal(offered.length, 2)
    t.match(told, [line])
    t.equal(told.length, 1)
    t.notMatch(told.join(), /secret/)
  }
})

t.test('shows a payee with its checksum, which strict clients require (EIP-55)', async (t) => {
  for (const payTo of [PAY_TO, PAY_TO.toLowerCase(), `0x${PAY_TO.slice(2).toUpperCase()}`]) {
    t.equal(tillsWith({ payTo }).of(x402)[0]?.payTo, PAY_TO)
  }
})

t.test(
  'withdraws a network whose token is another one, offers it again when it agrees, and inspects what a reload adds',
  async (t) => {
    const chain = await startBase()
    const node = await openRpcProxy(chain.rpcUrl)
    t.teardown(async () => {
      await node.close()
      await chain.stop()
    })
    const tills = tillsWith({ rpcUrls: { 8453: node.url, 137: chain.rpcUrl }, caller: fetch })
    const base = { ...x402, networks: ['eip155:8453'] }
    const offered = (terms: typeof x402): string[] => tills.of(terms).map(({ network }) => network.id)
    const told: string[] = []
    const inspect = (terms: typeof x402) => tills.inspect(terms, (line) => told.push(line))
    t.equal(await inspect(base), 'as before')
    t.strictSame(offered(base), ['eip155:8453'])

    node.instead(async (method, params) =>
      method === 'eth_call' && JSON.stringify(params).includes(DOMAIN_SEPARATOR)
        ? { result: `0x${'00'.repeat(32)}` }
        : undefined,
    )
    t.equal(await inspect(base), 'changed')
    t.strictSame(offered(base), [])
    t.match(told.join('\n'), /Base \(eip155:8453\) cannot be offered/)

    node.instead(async () => undefined)
    t.equal(await inspect(base), 'changed')
    t.strictSame(offered(base), ['eip155:8453'])

    t.strictSame(offered(x402), ['eip155:137', 'eip155:8453'])
    t.equal(await inspect(x402), 'changed', 'the endpoint of Polygon leads to another chain')
    t.strictSame(offered(x402), ['eip155:8453'])
  },
)

const DOMAIN_SEPARATOR = '0x3644e515'
