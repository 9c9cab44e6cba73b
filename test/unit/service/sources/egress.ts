import t from 'tap'
import { type Outcome, answerOf } from '../../../../src/service/sources/egress/outcome.ts'
import { EXPIRED_CERTIFICATE, SITE_CERTIFICATE } from '../../../../src/service/stand-ins/web/certificates.ts'
import { openInternet } from '../../../support/service/hostile-site.ts'

/** In one word what became of a request, with the text or the reason. */
function told(outcome: Outcome): string {
  if (outcome.kind === 'answered')
    return `${outcome.reply.status}: ${Buffer.from(outcome.reply.body).toString()}`
  if (outcome.kind === 'refused')
    return `${outcome.redirected ? 'redirected, ' : ''}refused: ${outcome.refusal}`
  return `failed: ${outcome.mishap}`
}

t.test('sends exactly the User-Agent with contact', async (t) => {
  const { get, port } = await openInternet(t)
  t.equal(
    told(await get(`http://www.site.com:${port}/page`)),
    '200: <p>Ratecard/1.0 (+https://api.our-service.com); accept accept-encoding connection host user-agent',
  )
  t.equal(
    told(await get(`http://www.site.com:${port}/cookie`)),
    '200: <p>Ratecard/1.0 (+https://api.our-service.com); accept accept-encoding connection host user-agent',
    'a cookie is not kept, a redirect tells no referer',
  )
})

t.test('refuses names that resolve to internal addresses', async (t) => {
  const names = {
    'inside-site.com': [['127.0.0.2']],
    'metadata-site.com': [['169.254.169.254']],
    'private-site.com': [['10.0.0.1']],
    'mixed-site.com': [['127.0.0.1', '127.0.0.2']],
    'mixed-other-way-site.com': [['127.0.0.2', '127.0.0.1']],
    'mapped-site.com': [['::ffff:127.0.0.2']],
    'six-site.com': [['::1']],
    'nat64-site.com': [['64:ff9b::7f00:2']],
    '6to4-site.com': [['2002:7f00:2::']],
    'unique-local-site.com': [['fd00:ec2::254']],
    'zero-site.com': [['0.0.0.0']],
    'public-site.com': [['93.184.216.34']],
    'nothing-site.com': [[]],
    'rebinding-site.com': [['127.0.0.1'], ['127.0.0.2']],
  }
  const { get, port, securePort, inside, asked } = await openInternet(t, { names })
  for (const name of Object.keys(names).filter((each) => each !== 'rebinding-site.com')) {
    t.equal(told(await get(`http://${name}:${port}/page`)), 'refused: address', name)
    t.equal(told(await get(`https://${name}:${securePort}/page`)), 'refused: address', `${name} over TLS`)
    t.equal(
      told(await get(`http://from-${name}:${port}/to?to=http://${name}:${port}/page`)),
      'redirected, refused: address',
      `a redirect to ${name}`,
    )
  }
  const first = asked.length
  t.match(told(await get(`http://rebinding-site.com:${port}/page`)), /^200/)
  t.equal(asked.length, first + 1, 'the address that was checked is the one that is connected to: asked once')
  t.equal(
    told(await get(`http://rebinding-site.com:${port}/page`)),
    'refused: address',
    'and checked every time',
  )
  t.equal(inside(), 0, 'nobody has knocked inside')
})

t.test('checks every redirect like the first address', async (t) => {
  const { get, port, inside } = await openInternet(t)
  const table: readonly (readonly [string, string])[] = [
    ['http://169.254.169.254/latest/meta-data/iam/', 'address'],
    ['http://[fd00:ec2::254]/', 'address'],
    [`http://127.0.0.2:${port}/`, 'address'],
    [`http://2130706434:${port}/`, 'address'],
    [`//127.0.0.2:${port}/`, 'address'],
    ['http://localhost/', 'name'],
    ['http://metadata.google.internal/', 'name'],
    ['file:///etc/passwd', 'scheme'],
    ['gopher://127.0.0.1:6379/x', 'scheme'],
    ['javascript:alert(1)', 'scheme'],
    ['http://user:word@www.site.com/', 'credentials'],
    ['http://www.site.com:6379/', 'port'],
    ['https://api.our-service.com/paid/ping', 'own'],
  ]
  for (const status of [301, 302, 303, 307, 308]) {
    for (const [to, refusal] of table) {
      const outcome = await get(`http://site-${status}.com:${port}/to/${status}?to=${encodeURIComponent(to)}`)
      t.equal(told(outcome), `redirected, refused: ${refusal}`, `${status} ${to.slice(0, 60)}`)
    }
  }
  t.equal(
    told(await get(`http://www.a.com:${port}/to?to=http://`)),
    'failed: redirects',
    'an address nobody can read',
  )
  t.equal(inside(), 0)
})

t.test('follows at most a few redirects', async (t) => {
  const { get, port } = await openInternet(t)
  const last = await get(`http://www.site.com:${port}/chain/3`)
  t.equal(told(last), '200: the end')
  t.match(last, { reply: { redirects: { length: 3 } } })
  t.equal(told(await get(`http://www.site.com:${port}/chain/4`)), 'failed: redirects')
  t.equal(told(await get(`http://www.site.com:${port}/loop`)), 'failed: redirects')
  t.equal(told(await get(`http://www.site.com:${port}/endless/0`)), 'failed: redirects')
  t.equal(
    told(await get(`http://www.site.com:${port}/nowhere`)),
    '302: moved',
    'without Location it is an answer',
  )
  t.equal(told(await get(`http://www.site.com:${port}/to/300`)), '300: ')
  t.equal(told(await get(`http://www.site.com:${port}/to/304`)), '304: ')
})

t.test('limits plain and compressed bodies', async (t) => {
  const { get, port } = await openInternet(t)
  const before = process.memoryUsage().rss
  t.equal(told(await get(`http://www.a.com:${port}/gzip-bomb`)), 'failed: too_large')
  t.equal(told(await get(`http://www.a.com:${port}/br-bomb`)), 'failed: too_large')
  t.equal(told(await get(`http://www.a.com:${port}/large`)), 'failed: too_large')
  t.equal(told(await get(`http://www.a.com:${port}/flood`)), 'failed: too_large')
  for (const path of ['gzip-bomb', 'br-bomb', 'large', 'flood']) {
    const cut = answerOf(
      await get(`http://www.b.com:${port}/${path}`, { measure: { bytes: 1000, beyond: 'cut' } }),
      'url',
    )
    t.ok(cut.cut, path)
    t.equal(cut.body.length, 1000)
  }
  // The bombs of the site are in this process too.
  t.ok(process.memoryUsage().rss - before < 400 * 1024 * 1024, 'as if nothing had been unpacked')
})

t.test('reads an answer as its media type says', async (t) => {
  const { get, port } = await openInternet(t)
  t.equal(told(await get(`http://www.a.com:${port}/gzip/1`)), '200: small 1')
  t.equal(told(await get(`http://www.a.com:${port}/br/2`)), '200: small 2')
  for (const path of ['twice-packed', 'unknown-coding', 'deflate', 'not-gzip', 'half-gzip', 'not-br'])
    t.equal(told(await get(`http://www.a.com:${port}/${path}`)), 'failed: encoding', path)
  for (const path of ['huge-headers', 'many-headers', 'reset'])
    t.equal(told(await get(`http://www.b.com:${port}/${path}`)), 'failed: broken', path)
  t.equal(
    told(await get(`http://www.b.com:${port}/status/503`)),
    '503: ',
    'an error of the site is an answer',
  )
})

t.test('keeps serving after a server of another protocol', async (t) => {
  const answers = [
    'SSH-2.0-OpenSSH_9.6\r\n',
    '+OK redis\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n',
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nhello\r\n',
    'HTTP/1.1 99999 OK\r\n\r\n',
    'HTTP/9.9 200 OK\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n',
    `HTTP/1.1 200 OK\r\n${'x'.repeat(100_000)}`,
    'HTTP/1.1 200 OK\r\nx\u0000y: 1\r\n\r\n',
    '',
  ]
  for (const answer of answers) {
    const { get, rawPort } = await openInternet(t, {
      raw: (socket) => socket.once('data', () => socket.end(answer)),
    })
    t.equal(
      told(await get(`http://www.site.com:${rawPort}/`)),
      'failed: broken',
      JSON.stringify(answer.slice(0, 50)),
    )
  }
})

t.test('ends a request to a slow site at its deadline', async (t) => {
  const { get, port, rawPort, securePort } = await openInternet(t, {
    raw: (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n'), 100)
      socket.once('close', () => clearInterval(timer))
    },
  })
  const slow = await Promise.all([
    get(`http://a.com:${port}/drip`),
    get(`http://b.com:${port}/silence`),
    get(`http://c.com:${port}/stall`),
    get(`http://d.com:${rawPort}/`),
    get(`https://www.example.org:${securePort}/drip`),
    get(`http://e.com:${port}/to?to=/drip`),
  ])
  for (const outcome of slow) t.equal(told(outcome), 'failed: timeout')
  t.equal(
    told(await get(`http://f.com:${port}/drip`, {}, AbortSignal.timeout(200))),
    'failed: timeout',
    'a caller can have less patience',
  )
})

t.test('refuses a certificate of another name', async (t) => {
  const good = await openInternet(t)
  t.match(told(await good.get(`https://www.example.com:${good.securePort}/page`)), /^200/)
  t.equal(
    told(await good.get(`https://www.site.com:${good.securePort}/page`)),
    'failed: certificate',
    'another name',
  )
  t.equal(
    told(await good.get(`https://127.0.0.1:${good.securePort}/page`)),
    'failed: certificate',
    'an address',
  )
  t.equal(told(await good.get(`https://www.example.com:${good.port}/page`)), 'failed: certificate', 'no TLS')
  const expired = await openInternet(t, { certificate: EXPIRED_CERTIFICATE })
  t.equal(
    told(await expired.get(`https://www.example.com:${expired.securePort}/page`)),
    'failed: certificate',
  )
  const stranger = await openInternet(t, { trusted: SITE_CERTIFICATE })
  t.equal(
    told(await stranger.get(`https://www.example.com:${stranger.securePort}/page`)),
    'failed: certificate',
  )
})

t.test('limits requests per site under all of its names', async (t) => {
  const { get, port } = await openInternet(t)
  const outcomes: string[] = []
  for (let place = 0; place < 32; place += 1)
    outcomes.push(told(await get(`http://n${place}.victim.co.uk:${port}/status/204`)))
  t.same(outcomes.slice(0, 30), Array(30).fill('204: '))
  t.same(outcomes.slice(30), Array(2).fill('failed: limited'))
  const through = await get(`http://other.org:${port}/to?to=http://x.victim.co.uk:${port}/page`)
  t.equal(told(through), 'failed: limited', 'nor by way of another site')
  const many = await Promise.all(
    Array.from({ length: 12 }, () => get(`http://one.org:${port}/drip`, {}, AbortSignal.timeout(300))),
  )
  t.equal(many.filter((each) => told(each) === 'failed: limited').length, 4, 'eight at a time')
})

t.test('tells the caller what to correct', async (t) => {
  const { get, port } = await openInternet(t, {
    names: { 'in.site.com': [['10.0.0.1']], 'no.site.com': [[]] },
  })
  const said = async (url: string): Promise<unknown> => {
    const outcome = await get(url)
    try {
      return answerOf(outcome, 'url').status
    } catch (fault) {
      return fault
    }
  }
  t.equal(await said(`http://a.com:${port}/page`), 200)
  t.match(await said('ftp://a.com/'), {
    parameter: 'url',
    sentence: 'url must start with https:// or http://',
  })
  const inside = await said(`http://in.site.com:${port}/`)
  t.match(inside, { sentence: 'url leads to no public address' })
  t.same(
    inside,
    await said(`http://no.site.com:${port}/`),
    'no difference between a name that is inside and none',
  )
  t.match(await said(`http://a.com:${port}/to?to=http://10.0.0.1/`), {
    sentence: 'url redirects to an address that leads to no public address',
  })
  t.match(await said(`http://a.com:${port}/large`), { parameter: 'url', ctx: { reason: 'too_large' } })
  t.match(await said(`http://a.com:${port}/reset`), { code: 'source_error' })
})
