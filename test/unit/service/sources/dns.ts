import t from 'tap'
import { startDns } from '../../../../src/service/stand-ins/web/dns.ts'
import { Dns } from '../../../../src/service/sources/dns.ts'

t.test('tells a missing name from a missing record', async (t) => {
  const { server, stop } = await startDns()
  t.teardown(stop)
  const dns = new Dns([server])
  t.same(await dns.a('example.com'), { kind: 'found', records: ['93.184.215.14'] })
  t.match(await dns.mx('example.com'), {
    kind: 'found',
    records: [{ exchange: 'mail.example.com', priority: 10 }],
  })
  t.same(await dns.txt('_dmarc.example.org'), { kind: 'found', records: ['v=DMARC1; p=reject'] })
  t.same(await dns.caa('example.net'), {
    kind: 'found',
    records: [{ tag: 'issue', value: 'ca.example.net' }],
  })
  t.same(await dns.mx('www.example.com'), { kind: 'none', exists: true })
  t.same(await dns.a('nobodyhasthis.com'), { kind: 'none', exists: false })
  t.same(await dns.a(`${'a'.repeat(300)}.com`), { kind: 'none', exists: false })
  t.same(await dns.addresses('example.com'), ['93.184.215.14', '2606:2800:21f:cb07:6820:80da:af6b:8b2c'])
  t.same(await dns.addresses('nobodyhasthis.com'), [])
  t.same(await dns.addresses('localhost'), [], 'the hosts file of this machine is not for callers')
})

t.test('tells silent name servers from a missing name', async (t) => {
  const dns = new Dns(['127.0.0.1:9'])
  t.same(await dns.a('example.com'), { kind: 'unknown' })
  await t.rejects(dns.addresses('example.com'), { code: 'ESERVFAIL' })
})
