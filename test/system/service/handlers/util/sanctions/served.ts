import t from 'tap'
import { onchainClient } from '../../../../../support/base-chain.ts'
import { openPublisher } from '../../../../../support/service/sanctions-lists.ts'
import { readHeader, stockFetch } from '../../../../../support/payment.ts'
import { readSandboxFile, startServer } from '../../../../../support/server.ts'

t.test('sells a lookup in the sandbox, with more than the sample shows', async (t) => {
  const server = await startServer({ args: ['--sandbox', '--offline'] })
  t.teardown(() => server.stop())
  const { evm } = readSandboxFile(server)
  const chain = onchainClient(evm)
  const pay = stockFetch(evm.payerKey)
  const path = '/util/sanctions?name=Mahan%20Air'

  const sample = await fetch(`${server.url}/sample${path}`)
  t.equal(sample.status, 200)
  const shown = (await sample.json()) as object
  t.match(shown, { preview: true, result: 'match', matches: [{ name: 'MAHAN AIR', list: 'us_ofac_sdn' }] })
  t.notMatch(JSON.stringify(shown), /"programmes"/)

  const paid = await pay(`${server.url}/paid${path}`)
  t.equal(paid.status, 200)
  t.match(readHeader(paid, 'payment-response'), { success: true })
  const answer = (await paid.json()) as object
  t.match(answer, {
    endpoint: '/paid/util/sanctions',
    cached: true, // the list was read for the sample
    source: [{ name: 'Sandbox stand-in for the sanctions lists' }],
    result: 'match',
    matches: [{ score: 1, programmes: ['SDGT'] }],
    lists_checked: [{ id: 'us_ofac_sdn' }, { id: 'un_sc' }],
    lists_not_checked: [{ id: 'uk_fcdo' }, { id: 'eu_fsf' }, { id: 'us_ofac_cons' }],
    notice: /name lookup/,
  })
  t.notMatch(JSON.stringify(answer), /\bclear/i)
  t.strictSame(await chain.received(evm.payTo), [10_000n], 'the price, once')

  for (const name of ['%E2%80%AE--', 'a', 'x'.repeat(201), '%00%01']) {
    const refused = await pay(`${server.url}/paid/util/sanctions?name=${name}`)
    t.equal(refused.status, 422, name.slice(0, 20))
  }
  const hostile = await fetch(`${server.url}/sample/util/sanctions?name=${'%D8%A8'.repeat(200)}`)
  t.equal(hostile.status, 200)
  t.strictSame(await chain.received(evm.payTo), [10_000n], 'what cannot be looked up costs nothing')

  const openapi = JSON.stringify(await (await fetch(`${server.url}/openapi.json`)).json())
  t.match(openapi, 'A name lookup, not a compliance screening')
})

t.test('answers 503, uncharged, while a list is missing', async (t) => {
  const publisher = await openPublisher(t, '')
  const server = await startServer({ args: ['--sandbox'], env: { OFAC_URL: publisher.url } })
  t.teardown(() => server.stop())
  const { evm } = readSandboxFile(server)
  const chain = onchainClient(evm)
  const response = await stockFetch(evm.payerKey)(`${server.url}/paid/util/sanctions?name=Mahan%20Air`)
  t.equal(response.status, 503)
  t.equal(response.headers.get('retry-after'), '30')
  t.match(await response.json(), {
    code: 'dataset_unavailable',
    detail: /^The list us_ofac_sdn is (?:empty|not loaded yet)$/,
    charged: 'no',
    retryable: true,
  })
  t.strictSame(await chain.uses(), [])
})
