import t from 'tap'
import { Failure, InvalidParameter, type JsonObject } from '../../../../../src/engine/handler.ts'
import { siteIntel } from '../../../../../src/service/handlers/util/site-intel.ts'
import { Dns } from '../../../../../src/service/sources/dns.ts'
import { fixedContext, keepingContext, publishedExample } from '../../../../support/handler-context.ts'
import { openSite, openWeb, rdapOf, type Web } from '../../../../support/service/stand-in-web.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

async function look(web: Web, target: string): Promise<JsonObject> {
  return checkedAnswer('util/site-intel', await siteIntel(web).run({ target }, fixedContext())).body
}

t.test('publishes an example that equals the handler’s answer', async (t) => {
  t.same(await look(await openWeb(t), 'example.com'), publishedExample('util/site-intel'))
})

t.test('accepts every spelling of a site', async (t) => {
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

t.test('refuses everything but public hosts', async (t) => {
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

t.test('answers about a name that is free', async (t) => {
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

t.test('looks up sixty sites below one top-level domain, and states its own limit', async (t) => {
  // At one moment: nothing is added to the budget of the registry.
  const moment = new Date()
  const web = await openWeb(t, [], () => moment)
  const context = keepingContext({ now: moment.getTime() })
  const find = async (names: readonly string[]) => {
    const found = await Promise.all(names.map((name) => web.rdap.find(name, context)))
    return new Set(found.map(({ kind }) => kind))
  }
  const names = (count: number, from: number) =>
    Array.from({ length: count }, (_, place) => `nobody${from + place}.com`)
  for (const from of [0, 20, 40]) t.strictSame(await find(names(20, from)), new Set(['known']))
  await find(names(40, 60))
  t.strictSame(await find(names(5, 100)), new Set(['limited']))
  const { warnings } = checkedAnswer(
    'util/site-intel',
    await siteIntel(web).run({ target: 'example.com' }, context),
  )
  t.match(warnings, [
    { code: 'source_limited', message: /asked as often as we may: registration was not read/ },
  ])
})

t.test('keeps a registrant’s name out of the answer', async (t) => {
  t.notMatch(JSON.stringify(await look(await openWeb(t), 'example.com')), /Registrant|Jane/)
})

t.test('charges nothing for an answer without content', async (t) => {
  const { egress } = await openSite(t, (_, response) => response.destroy())
  const dns = new Dns(['127.0.0.1:9'])
  const rdap = rdapOf(egress, 'http://127.0.0.1:9/')
  const fault = await look({ egress, dns, rdap }, 'example.com').catch((thrown: unknown) => thrown)
  t.ok(fault instanceof Failure, String(fault))
  t.match(fault, { code: 'source_error' })
})

t.test('answers from a registry that names no registrar and only the date of a change', async (t) => {
  // The form of DENIC's answers.
  const { egress, url } = await openSite(t, (request, response) => {
    const changed = { eventAction: 'last changed', eventDate: '2025-03-12T21:44:25+01:00' }
    const body =
      request.url === '/dns.json'
        ? { services: [[['com'], [`${url}/`]]] }
        : { objectClassName: 'domain', events: [changed] }
    response.end(JSON.stringify(body))
  })
  const web = { egress, dns: new Dns(['127.0.0.1:9']), rdap: rdapOf(egress, `${url}/dns.json`) }
  t.match(await look(web, 'example.com'), {
    registration: { registered: true, registrar: null, updated_at: '2025-03-12T20:44:25.000Z', status: [] },
  })
})

t.test('previews part of the answer', async (t) => {
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
