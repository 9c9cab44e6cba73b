import t from 'tap'
import { canonicalPath, splitTarget } from '../../../../src/engine/http/request-target.ts'

t.test('serves paths as they are published', async (t) => {
  for (const path of [
    '/',
    '/paid/ping',
    '/paid/gamestore/app/730',
    '/.well-known/agent-card.json',
    '/llms.txt',
    '/a-b_c~d.e',
    '/paid/word/sm%C3%B8rbr%C3%B8d',
    '/paid/word/%E5%B0%8F%E9%BE%99',
    '/paid/word/a%20b',
    '/paid/word/100%25',
    '/paid/word/%25',
    "/paid/word/it's(a)*b!c$d&e+f,g=h:i@j",
    '/paid/word/%3A%3F%23%5B%5D',
    '/paid/app/7%2F30',
    '/paid/word/%2F',
    '/paid/word/..x',
    '/paid/word/...',
    `/paid/word/${'x'.repeat(30_000)}`,
  ]) {
    t.equal(canonicalPath(path), path, path.slice(0, 60))
  }
})

t.test('redirects or refuses every other spelling of a path', async (t) => {
  const spellings: Readonly<Record<string, readonly string[]>> = {
    'empty segments': ['//', '//paid/ping', '/paid//ping', '/paid/ping//'],
    'trailing slash': ['/paid/ping/'],
    'dot segments': ['/./paid/ping', '/paid/./ping', '/paid/../paid/ping', '/..', '/paid/.', '/paid/..'],
    'encoded dots': ['/paid/%2e/ping', '/paid/%2E/ping', '/paid/%2e%2e/x', '/paid/.%2E/ping', '/%2E%2e/paid'],
    'lower-case encoded slash': ['/paid%2fping', '/paid/app/7%2f30'],
    'dot segments around an encoded slash': ['/paid/word/..%2Fx', '/paid/word/x%2F..', '/paid/.%2Fping'],
    backslash: ['/paid\\ping', '\\paid\\ping', '/paid%5Cping', '/paid%5cping', '/paid/..\\ping'],
    'matrix parameter': ['/paid/ping;x=1', '/paid;/ping', '/;/paid/ping'],
    'encoded letter': ['/paid/%70ing', '/%50aid/ping', '/paid/app/73%30', '/a%2Db', '/a%5Fb', '/a%7Eb'],
    'lower-case octets': ['/paid/word/%c3%b8', '/paid/word/%C3%b8', '/paid/word/%3a'],
    'broken encoding': ['/paid/ping%', '/paid/%', '/paid/%2', '/paid/%zz', '/paid/%G0', '/paid/100%'],
    'not UTF-8': ['/paid/word/%C3', '/paid/word/%FF', '/paid/word/%ED%A0%80'],
    'overlong UTF-8': [
      '/paid/word/%C0%AF',
      '/paid/word/%C1%BF',
      '/paid/word/%E0%80%AF',
      '/paid/%F0%80%80%AF',
    ],
    NUL: ['/paid/ping%00', '/paid/word/%00', '/paid/ping\0'],
    'raw non-ASCII': ['/paid/word/ø', '/paid/word/\u00c3\u00b8', '/paid／ping', '/paid/ping\u00a0'],
    'raw marks': [
      '/paid/ping#x',
      '/paid/ping?x',
      '/paid/p ing',
      '/paid/{appid}',
      '/paid/[x]',
      '/paid/<x>',
      '/a|b',
    ],
    'white space': ['/paid/ping ', ' /paid/ping', '/paid/ping\t', '/paid/ping\n', '/paid/ping\r'],
    'not a path': ['', '*', 'paid/ping', 'x://y', 'localhost:80'],
  }
  for (const [kind, paths] of Object.entries(spellings)) {
    for (const path of paths) t.equal(canonicalPath(path), undefined, `${kind}: ${JSON.stringify(path)}`)
  }
})

t.test('serves each octet in at most one spelling', async (t) => {
  for (let code = 0; code < 0x80; code += 1) {
    const hex = code.toString(16).padStart(2, '0')
    const raw = canonicalPath(`/x${String.fromCharCode(code)}y`)
    const upper = canonicalPath(`/x%${hex.toUpperCase()}y`)
    const lower = hex === hex.toUpperCase() ? undefined : canonicalPath(`/x%${hex}y`)
    t.equal(lower, undefined, `lower-case %${hex}`)
    // RFC 3986 §2.2: a reserved mark and its encoding are two different paths, and both are data.
    const reserved = "!$&'()*+,=:@".includes(String.fromCharCode(code))
    if (!reserved && code !== 0x2f) t.ok(raw === undefined || upper === undefined, `one spelling of ${hex}`)
  }
})

t.test('matches case in paths', async (t) => {
  t.equal(canonicalPath('/PAID/PING'), '/PAID/PING')
})

t.test('keeps the path apart from the query and a foreign host', async (t) => {
  t.strictSame(splitTarget('/paid/ping'), { path: '/paid/ping', query: '' })
  t.strictSame(splitTarget('/paid/ping?'), { path: '/paid/ping', query: '' })
  t.strictSame(splitTarget('/paid/ping?a=1?b/../c'), { path: '/paid/ping', query: 'a=1?b/../c' })
  t.strictSame(splitTarget('http://evil.example/paid/ping?a=1'), { path: '/paid/ping', query: 'a=1' })
  t.strictSame(splitTarget('HTTPS://user@evil.example:8/x'), { path: '/x', query: '' })
  t.strictSame(splitTarget('http://evil.example'), { path: '', query: '' })
  t.strictSame(splitTarget('/paid/ping#x'), { path: '/paid/ping#x', query: '' })
  t.strictSame(splitTarget('/paid\\..\\ping'), { path: '/paid\\..\\ping', query: '' })
  t.strictSame(splitTarget('*'), { path: '*', query: '' })
})
