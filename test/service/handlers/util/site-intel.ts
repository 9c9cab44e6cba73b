import t from 'tap'
import { Failure, InvalidParameter, type JsonObject } from '../../../../src/engine/index.ts'
import { siteIntel } from '../../../../src/service/handlers/util/site-intel.ts'
import { Dns } from '../../../../src/service/sources/dns.ts'
import { enveloped, fixedContext, publishedExample } from '../../../support/fixed-context.ts'
import { openSite, openWeb, rdapOf, type Web } from '../../../support/web.ts'

async function look(web: Web, target: string): Promise<JsonObject> {
  return enveloped(await siteIntel(web).run({ target }, fixedContext())).body
}

t.test('the published example is what the handler answers', async (t) => {
  t.same(await look(await openWeb(t), 'example.com'), publishedExample('util/site-intel'))
})

t.test('a site could be looked at under one spelling only', async (t) => {
  const web = await openWeb(t)
  for (const [target, host, domain] of [
    ['EXAMPLE.com', 'example.com', 'example.com'],
    ['https://www.example.com/path?q=1#x', 'www.example.com', 'example.com'],
    ['http://news.example.org', 'news.example.org', 'example.org'],
    ['www.example.net/about', 'www.example.net', 'example.net'],
    ['example.com.', 'example.com', 'example.com'],
  ] as const) {
    t.match(await look(web, target), {
      target,
      host,
      registrable_domain: domain,
      resolves: true,
      http: { status: 200 },
    })
  }
})

t.test('what is no public host would be looked at', async (t) => {
  const web = await openWeb(t)
  for (const target of [
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    'http://[::1]/',
    '[::ffff:10.0.0.1]',
    '169.254.169.254',
    '8.8.8.8',
    'localhost',
    'intranet',
    'metadata.google.internal',
    'app.test',
    'com',
    'ftp://example.com',
    'file:///etc/passwd',
    'https://user:word@example.com/',
    'exa mple.com',
    'example.com\r\nhost: x',
    '..',
    'https://',
    '-a.com',
  ]) {
    const fault = await look(web, target).catch((thrown: unknown) => thrown)
    t.ok(fault instanceof InvalidParameter, target)
    t.match(fault, { parameter: 'target', sentence: 'target must be a public host name or URL' }, target)
  }
  const ours = await openWeb(t, ['example.com'])
  t.match(await look(ours, 'example.com').catch((fault: unknown) => fault), {
    sentence: 'target leads back to this service',
  })
})

t.test('a name that nobody has would be an error instead of an answer', async (t) => {
  const web = await openWeb(t)
  t.match(await look(web, 'nobodyhasthis.com'), {
    resolves: false,
    registration: { registered: false, registrar: null },
    tls: null,
    http: null,
    page: null,
    dns: { a: [], mx: [] },
    technologies: null,
    security: { score: null, checks: { valid_certificate: null, content_security_policy: null, caa: false } },
  })
})

t.test('sixty sites below one top-level domain are all looked up, and our own limit is said', async (t) => {
  const web = await openWeb(t)
  const { rdap } = web
  const find = async (count: number, from: number) => {
    const kinds: string[] = []
    for (let done = 0; done < count; done += 20) {
      const names = Array.from({ length: 20 }, (_, place) => `nobody${from + done + place}.com`)
      const found = await Promise.all(names.map((name) => rdap.find(name, fixedContext())))
      kinds.push(...found.map((each) => (each.kind === 'limited' ? `limited by ${each.by}` : each.kind)))
    }
    return kinds
  }
  t.strictSame(new Set(await find(60, 0)), new Set(['known']))
  const more = await find(400, 100)
  t.ok(more.includes('limited by us'))
  t.notOk(more.includes('unknown'))
  t.match(enveloped(await siteIntel(web).run({ target: 'example.com' }, fixedContext())).warnings, [
    {
      code: 'source_limited',
      message: 'the registry of this domain is asked as often as we may: registration was not read',
    },
  ])
})

t.test('a registrant’s name would be sold', async (t) => {
  t.notMatch(JSON.stringify(await look(await openWeb(t), 'example.com')), /Registrant|Jane/)
})

t.test('an answer that knows nothing would be sold', async (t) => {
  const { egress } = await openSite(t, (_, response) => response.destroy())
  const dns = new Dns(['127.0.0.1:9'])
  const rdap = rdapOf(egress, 'http://127.0.0.1:9/')
  const fault = await look({ egress, dns, rdap }, 'example.com').catch((thrown: unknown) => thrown)
  t.ok(fault instanceof Failure, String(fault))
  t.match(fault, { code: 'source_error' })
})

t.test('a preview would give away the whole answer', async (t) => {
  const web = await openWeb(t)
  t.strictSame(siteIntel(web).preview(await look(web, 'example.com')), {
    target: 'example.com',
    host: 'example.com',
    resolves: true,
    tls: { valid: true, days_remaining: 33977 },
    http: { status: 200 },
    page: { title: 'The Lamplighters of Wexmire' },
  })
})
