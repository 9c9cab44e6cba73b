import t from 'tap'
import { Dns, type Lookup } from '../../../../src/service/sources/dns.ts'
import { MailServers } from '../../../../src/service/sources/mail-servers.ts'
import { MetricsBySource } from '../../../../src/service/sources/source-metrics.ts'
import { startDns } from '../../../../src/service/stand-ins/web/dns.ts'
import { keepingContext } from '../../../support/handler-context.ts'

const nameServer = await startDns()
t.teardown(() => nameServer.stop())

/** The sandbox's name server, of which some TXT records are answered otherwise. */
class Altered extends Dns {
  readonly texts = new Map<string, Lookup<string>>()
  readonly asked: string[] = []

  constructor() {
    super([nameServer.server])
  }

  override txt(name: string): Promise<Lookup<string>> {
    this.asked.push(name)
    const altered = this.texts.get(name)
    return altered === undefined ? super.txt(name) : Promise.resolve(altered)
  }
}

function open() {
  const dns = new Altered()
  const servers = new MailServers(dns, new MetricsBySource(() => new Date()).of('dns'))
  const context = keepingContext({ now: Date.parse('2026-11-20T20:00:00Z') })
  return { dns, find: async (domain: string) => (await servers.find(domain, context)).setup }
}

t.test('asks again after one failure of a name server', async (t) => {
  const { dns, find } = open()
  dns.texts.set('gmail.com', { kind: 'unknown' })
  // Whoever asks meanwhile shares the gap, and nobody fails for it.
  for (const setup of await Promise.all([find('gmail.com'), find('gmail.com')]))
    t.match(setup, { spf: null, unknown: ['spf'] })
  t.equal(dns.asked.filter((name) => name === 'gmail.com').length, 1)
  dns.texts.clear()
  t.match(await find('gmail.com'), { spf: true, unknown: [] })
  const asked = dns.asked.length
  t.match(await find('gmail.com'), { spf: true, unknown: [] })
  t.equal(dns.asked.length, asked, 'what is whole is kept')
})

t.test('reports unreadable rules of a parent domain as a gap', async (t) => {
  const { dns, find } = open()
  dns.texts.set('_dmarc.example.com', { kind: 'unknown' })
  t.match(await find('news.example.com'), { dmarc: null, unknown: ['dmarc'] })
  dns.texts.set('_dmarc.news.example.com', { kind: 'found', records: ['v=DMARC1; p=quarantine'] })
  t.match(await find('news.example.com'), { dmarc: 'quarantine', unknown: [] }, 'its own are enough')
})

t.test('applies what a domain asks for its subdomains to them only', async (t) => {
  const record = (text: string): Lookup<string> => ({ kind: 'found', records: [text] })
  for (const [text, own, below] of [
    ['v=DMARC1; p=none; sp=reject', 'none', 'reject'],
    ['v=DMARC1; sp = Quarantine ;p= reject', 'reject', 'quarantine'],
    ['v=DMARC1; p=reject', 'reject', 'reject'],
  ] as const) {
    const { dns, find } = open()
    dns.texts.set('_dmarc.example.com', record(text))
    t.match(await find('example.com'), { dmarc: own }, text)
    t.match(await find('news.example.com'), { dmarc: below }, text)
    dns.texts.set('_dmarc.shop.example.com', record('v=DMARC1; p=none; sp=reject'))
    t.match(await find('shop.example.com'), { dmarc: 'none' }, text)
  }
})
