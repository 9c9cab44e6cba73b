import { createServer } from 'node:http'
import t from 'tap'
import { clientOf } from '../../../../src/engine/http/client-address.ts'
import { listening } from '../../../support/http.ts'

/** Asks over a connection of this machine, as a proxy does. */
async function seen(forwarded: string | undefined, trustProxy: boolean): Promise<string | undefined> {
  let found: string | undefined
  const { url, close } = await listening(
    createServer((request, response) => {
      found = clientOf(request, trustProxy)
      response.end()
    }),
  )
  await fetch(url, forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } })
  await close()
  return found
}

t.test('assigns budgets by the real address, whatever a client writes into headers', async (t) => {
  const cases = {
    '203.0.113.9': '203.0.113.9',
    '8.8.8.8, 203.0.113.9': '203.0.113.9',
    '8.8.8.8, 203.0.113.9, 10.1.2.3, 192.168.0.1': '203.0.113.9',
    '203.0.113.9:4711': '203.0.113.9',
    '::ffff:203.0.113.9': '203.0.113.9',
    '[2001:db8:1:2:3:4:5:6]:4711': '2001:db8:1:2::/64',
    '2001:0DB8:0001:0002::7': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    '8.8.8.8, nonsense, 10.1.2.3': '10.1.2.3',
    '10.9.9.9, 10.1.2.3': '10.1.2.3',
  }
  for (const [forwarded, client] of Object.entries(cases))
    t.equal(await seen(forwarded, true), client, forwarded)
})

t.test('leaves this machine unlimited, and trusts headers behind a configured proxy only', async (t) => {
  t.equal(await seen(undefined, false), undefined)
  t.equal(await seen(undefined, true), undefined)
  t.equal(await seen('203.0.113.9', false), undefined)
  t.equal(await seen('nonsense', true), undefined)
})
