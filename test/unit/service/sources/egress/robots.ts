import t from 'tap'
import { permits, readRobots } from '../../../../../src/service/sources/egress/robots.ts'
import { collectGarbage } from '../../../../support/garbage.ts'
import { openInternet } from '../../../../support/service/hostile-site.ts'

function permitted(robots: string, path: string, agent = 'Ratecard'): boolean {
  return permits(readRobots(robots, agent), new URL(path, 'https://example.com'))
}

t.test('follows RFC 9309 for allowed and disallowed paths', async (t) => {
  const table: readonly (readonly [string, string, boolean])[] = [
    ['', '/', true],
    ['User-agent: *\nDisallow: /', '/', false],
    ['User-agent: *\nDisallow: /', '/robots.txt', true],
    ['User-agent: *\nDisallow:', '/a', true],
    ['user-AGENT: *\r\nDISALLOW: /a\r\n', '/a/b', false],
    ['User-agent: *\rDisallow: /a\r', '/a', false],
    ['\uFEFFUser-agent: *\nDisallow: /a', '/a', false],
    ['User-agent: * # all\nDisallow: /a # this', '/a', false],
    ['User-agent: *\nDisallow: /a', '/A', true],
    ['Disallow: /a', '/a', true],
    // groups: our own instead of everyone's, several together, names in a row, version ignored
    ['User-agent: *\nDisallow: /\nUser-agent: ratecard\nDisallow: /b', '/a', true],
    ['User-agent: ratecard\nDisallow: /b\nUser-agent: *\nDisallow: /', '/b', false],
    ['User-agent: RATECARD/2.0\nDisallow: /a', '/a', false],
    [
      'User-agent: Ratecard\nDisallow: /a\nUser-agent: x\nDisallow: /c\nUser-agent: ratecard\nDisallow: /b',
      '/b',
      false,
    ],
    ['User-agent: other\nUser-agent: ratecard\nDisallow: /a', '/a', false],
    ['User-agent: ratecardbot\nDisallow: /', '/a', true],
    ['User-agent: ratecard\nSitemap: /s\n\nCrawl-delay: 5\nDisallow: /a', '/a', false],
    // the longest rule, and allow among equals
    ['User-agent: *\nAllow: /a/b\nDisallow: /a', '/a/b/c', true],
    ['User-agent: *\nDisallow: /a/b\nAllow: /a', '/a/b/c', false],
    ['User-agent: *\nDisallow: /a\nAllow: /a', '/a', true],
    ['User-agent: *\nAllow: /a\nDisallow: /a', '/a', true],
    // wildcards
    ['User-agent: *\nDisallow: /*.php', '/x/y.php?z', false],
    ['User-agent: *\nDisallow: /*.php$', '/x/y.php?z', true],
    ['User-agent: *\nDisallow: /*.php$', '/x/y.php', false],
    ['User-agent: *\nDisallow: /a$', '/a', false],
    ['User-agent: *\nDisallow: /a$', '/ab', true],
    ['User-agent: *\nDisallow: *', '/a', false],
    ['User-agent: *\nDisallow: /a*b*c$', '/abc-bc', false],
    ['User-agent: *\nDisallow: /ab*b$', '/ab', true],
    ['User-agent: *\nDisallow: *private', '/very/private', false],
    // one spelling of the same path (§2.2.2)
    ['User-agent: *\nDisallow: /ツ', '/%E3%83%84', false],
    ['User-agent: *\nDisallow: /%e3%83%84', '/ツ', false],
    ['User-agent: *\nDisallow: /%61', '/a', false],
    ['User-agent: *\nDisallow: /a', '/%61b', false],
    ['User-agent: *\nDisallow: /a%2Fb', '/a/b', true],
    ['User-agent: *\nDisallow: /?q=', '/?q=1', false],
    // no file at all, but a page
    ['<html><body>User-agent: * Disallow: /</body></html>', '/', true],
  ]
  for (const [robots, path, expected] of table)
    t.equal(permitted(robots, path), expected, `${robots} ${path}`)
})

t.test('reads any robots.txt in bounded time', async (t) => {
  const rules = Array.from({ length: 100_000 }, () => 'Disallow: /*a*a*a*a*a*a*a*b').join('\n')
  t.ok(permitted(`User-agent: *\n${rules}`, `/${'a'.repeat(2000)}`))
  const crowd = Array.from({ length: 15_000 }, (_, index) => `User-agent: a${index}\nUser-agent: *`).join(
    '\n',
  )
  t.ok(permitted(`${crowd}\n${'Allow: /\n'.repeat(30_000)}`, '/a'))
  t.ok(permitted(`User-agent: ${'*'.repeat(200_000)}\nDisallow${':'.repeat(200_000)}`, '/a'))
})

t.test('reads a page only when its site allows it', async (t) => {
  let file: readonly [number, string] = [200, 'User-agent: ratecard\nDisallow: /closed']
  let asked = 0
  const { get, port } = await openInternet(t, {
    site: (request, response) => {
      if (request.url === '/robots.txt') {
        asked += 1
        response.writeHead(file[0], file[0] === 302 ? { location: file[1] } : {}).end(file[1])
      } else if (request.url === '/moved') response.writeHead(302, { location: '/closed' }).end()
      else response.writeHead(200, { 'content-type': 'text/html' }).end('read')
    },
  })
  const told = async (path: string, site: string): Promise<string> => {
    const outcome = await get(`http://${site}:${port}${path}`, { robots: 'honour' })
    if (outcome.kind === 'answered') return Buffer.from(outcome.reply.body).toString()
    return outcome.kind === 'refused' ? outcome.refusal : outcome.mishap
  }
  t.equal(await told('/open', 'a.com'), 'read')
  t.equal(await told('/closed/1', 'a.com'), 'robots')
  t.equal(await told('/moved', 'a.com'), 'robots', 'nor by a redirect')
  t.equal(asked, 1, 'the file is kept')
  const statuses: readonly (readonly [number, string, string])[] = [
    [404, '', 'read'],
    [410, '', 'read'],
    [401, '', 'robots'],
    [403, '', 'robots'],
    [500, '', 'robots'],
    [503, '', 'robots'],
    [429, '', 'robots'],
    [302, '/robots.txt', 'read'],
    [302, 'http://127.0.0.2/', 'read'],
    [302, 'http://169.254.169.254/', 'read'],
  ]
  for (const [place, [status, text, expected]] of statuses.entries()) {
    file = [status, text]
    t.equal(await told('/open', `s${place}-site.com`), expected, `${status} ${text}`)
  }
  file = [404, '']
  t.equal(await told('/open', 's4-site.com'), 'read', 'a file that could not be read is asked for again')
})

t.test('bounds the rules that are kept for a site', (t) => {
  const own = 'User-agent: ratecard\nDisallow: /first\n'
  const rules = Array.from({ length: 20_000 }, (_, index) => `Disallow: /${index}/${'x'.repeat(30)}`).join(
    '\n',
  )
  const read = readRobots(own + rules, 'Ratecard')
  t.ok(JSON.stringify(read).length < 25_000)
  t.notOk(permits(read, new URL('https://example.com/first')), 'what was read first counts')
  t.notOk(permits(read, new URL(`https://example.com/5/${'x'.repeat(30)}`)))
  t.end()
})

t.test('keeps rules independent of the text they were read from', (t) => {
  const used = (): number => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const file = (place: number): string =>
    Buffer.from(
      `User-agent: *\nDisallow: /${place}/${'long/'.repeat(20)}\n#${'x'.repeat(400_000)}`,
    ).toString()
  const before = used()
  const kept = Array.from({ length: 60 }, (_, place) => readRobots(file(place), 'Ratecard'))
  const grown = used() - before
  t.ok(grown < 5_000_000, `${grown} bytes for ${kept.length} files of 400 kB`)
  t.end()
})
