import t from 'tap'
import { ConsoleAccess, isLocalHost, isOwnRequest } from '../../../src/console/console-access.ts'
import { randomBytes } from '../../support/random.ts'

function tokenOf({ entrance }: ConsoleAccess): string | null {
  return new URL(entrance, 'http://127.0.0.1').searchParams.get('token')
}

const HERE = { host: '127.0.0.1:4022' }

t.test('lets one browser in by an address, and another one by the next', async (t) => {
  const access = new ConsoleAccess(randomBytes)
  const first = tokenOf(access)
  const cookie = access.enter(first, HERE)
  t.match(cookie, /^ratecard_console_4022=[\w-]{43}; HttpOnly; SameSite=Strict; Path=\/;/)
  t.equal(access.enter(first, HERE), undefined, 'the same address again')
  t.equal(access.enter(null, HERE), undefined)
  t.equal(access.enter('', HERE), undefined)
  t.not(tokenOf(access), first)
  t.ok(access.hasEntered({ ...HERE, cookie: `other=1; ${cookie?.split(';')[0]}` }))
  t.notOk(access.hasEntered({ ...HERE, cookie: `ratecard_console_4022=${first}` }), 'a token is no cookie')
  t.notOk(access.hasEntered({ ...HERE, cookie: 'ratecard_console_4022=' }))
  t.notOk(access.hasEntered(HERE))
  t.not(access.enter(tokenOf(access), HERE), undefined)
})

t.test('keeps browsers in when another process takes over', async (t) => {
  const before = new ConsoleAccess(randomBytes)
  const cookie = before.enter(tokenOf(before), HERE)?.split(';')[0] ?? ''
  const after = new ConsoleAccess(randomBytes, before.keys)
  t.ok(after.hasEntered({ ...HERE, cookie }))
  t.equal(tokenOf(after), tokenOf(before))
  t.notOk(new ConsoleAccess(randomBytes).hasEntered({ ...HERE, cookie }))
})

t.test('keeps a browser in on each port of one machine, since they share their cookies', async (t) => {
  const ports = ['127.0.0.1:4022', '127.0.0.1:4023', '127.0.0.1']
  const consoles = ports.map((host) => ({ host, access: new ConsoleAccess(randomBytes) }))
  const jar = new Map(
    consoles.map(({ host, access }) => {
      const [name = '', value = ''] = (access.enter(tokenOf(access), { host }) ?? '').split(/[=;]/)
      return [name, value]
    }),
  )
  const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ')
  for (const { host, access } of consoles) t.ok(access.hasEntered({ host, cookie }), host)
})

t.test('answers under the names of this machine alone', async (t) => {
  for (const host of ['127.0.0.1:4022', 'localhost:9', 'LOCALHOST', '[::1]:4022'])
    t.ok(isLocalHost({ host }), host)
  for (const host of [
    '',
    'evil.example',
    'localhost.evil.example:4022',
    '127.0.0.1.evil.example',
    '0.0.0.0:4022',
  ])
    t.notOk(isLocalHost({ host }), host)
  t.notOk(isLocalHost({}))
})

t.test('takes no request that another site has made', async (t) => {
  const host = '127.0.0.1:4022'
  const own = { host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }
  t.ok(isOwnRequest('POST', own))
  t.ok(isOwnRequest('GET', { host }))
  t.ok(isOwnRequest('GET', { host, 'sec-fetch-site': 'none' }))
  for (const origin of ['http://evil.example', 'http://127.0.0.1:9999', 'https://127.0.0.1:4022', 'null']) {
    t.notOk(isOwnRequest('POST', { ...own, origin }), origin)
    t.notOk(isOwnRequest('GET', { ...own, origin }), origin)
  }
  t.notOk(isOwnRequest('POST', { host }), 'a change without an origin')
  t.notOk(isOwnRequest('GET', { host, 'sec-fetch-site': 'cross-site' }))
  t.notOk(isOwnRequest('GET', { host, 'sec-fetch-site': 'same-site' }), 'another port of this machine')
})
