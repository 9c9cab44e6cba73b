import t from 'tap'
import { Failure, type JsonObject } from '../../../../../src/engine/handler.ts'
import { startDns } from '../../../../../src/service/stand-ins/web/dns.ts'
import { FREE_PROVIDERS } from '../../../../../src/service/data/mail-domains.ts'
import { suggestDomain } from '../../../../../src/service/handlers/util/email-verify/typing-slip.ts'
import { emailVerify } from '../../../../../src/service/handlers/util/email-verify.ts'
import { Dns } from '../../../../../src/service/sources/dns.ts'
import { MailServers } from '../../../../../src/service/sources/mail-servers.ts'
import { MetricsBySource } from '../../../../../src/service/sources/source-metrics.ts'
import { fixedContext, publishedExample } from '../../../../support/handler-context.ts'
import { checkedAnswer } from '../../../../support/service/answer-shape.ts'

const nameServer = await startDns()
t.teardown(() => nameServer.stop())
const records = new MetricsBySource(() => new Date())
const handler = emailVerify({
  mailServers: new MailServers(new Dns([nameServer.server]), records.of('dns')),
  dns: { name: 'Sandbox name server' },
})

async function verify(email: string): Promise<JsonObject> {
  return checkedAnswer('util/email-verify', await handler.run({ email }, fixedContext())).body
}

t.test('answers a deliverable address with its servers and rules', async (t) => {
  t.strictSame(await verify('Jane.Doe@Example.COM'), {
    email: 'Jane.Doe@Example.COM',
    status: 'domain_accepts_mail',
    score: 100,
    reasons: [],
    normalized: 'jane.doe@example.com',
    syntax: { valid: true, mistake: null, quoted: false, international: false },
    role_account: false,
    tagged: false,
    domain: {
      name: 'example.com',
      registrable: 'example.com',
      exists: true,
      mx: [{ exchange: 'mail.example.com', priority: 10 }],
      implicit_mx: false,
      null_mx: false,
      spf: true,
      dmarc: 'reject',
      provider: null,
    },
    has_mx: true,
    disposable: false,
    disposable_reported: false,
    free_provider: false,
    suggestion: null,
    smtp_checked: false,
    mailbox: 'unknown',
  })
  t.match(await verify('j.a.ne+shop@gmail.com'), {
    status: 'domain_accepts_mail',
    normalized: 'jane@gmail.com',
    tagged: true,
    free_provider: true,
    domain: { provider: 'google', dmarc: 'none' },
  })
})

t.test('calls an address undeliverable, with the reason, when its domain refuses mail', async (t) => {
  for (const [domain, reason] of [
    ['refuses.example.com', 'null_mx'],
    ['empty.example.com', 'no_mail_server'],
    ['no-such-name.example.com', 'domain_not_found'],
    ['inside.example.com', 'mail_servers_not_public'],
    ['lost.example.com', 'mail_servers_not_public'],
    ['localhost', 'domain_not_public'],
    ['printer.local', 'domain_not_public'],
    ['example.test', 'domain_not_public'],
  ] as const)
    t.match(await verify(`jane@${domain}`), { status: 'undeliverable', score: 0, reasons: [reason] }, domain)
})

t.test('names the risks of an address, the greatest first', async (t) => {
  t.match(await verify('a@mailinator.com'), { status: 'risky', disposable: true })
  t.match(
    await verify('a@lent.example.com'),
    { status: 'risky', disposable: true },
    'servers of throw-away mail',
  )
  t.match(await verify('jane.doe+x@gamil.com'), {
    status: 'risky',
    reasons: ['possible_typo', 'no_dmarc'],
    suggestion: 'jane.doe+x@gmail.com',
  })
  t.match(
    await verify('a@0-mail.com'),
    { disposable: true, disposable_reported: true },
    'and of the large list',
  )
  t.match(await verify('a@news.example.com'), { status: 'risky', domain: { implicit_mx: true, mx: [] } })
  t.match(await verify('No-Reply+7@example.com'), { status: 'risky', role_account: true, tagged: true })
  t.match(await verify('"jane doe"@example.com'), { reasons: ['quoted_local_part'] })
  t.match(await verify('дядя@example.com'), { reasons: ['needs_smtputf8'] })
  t.match(await verify('jane@[192.0.2.1]'), { status: 'risky', reasons: ['address_literal'] })
})

t.test('suggests the right free-mail domain for a mistyped name, ending or both', async (t) => {
  // Endings that do not exist: no name server is asked.
  for (const [typed, meant] of [
    ['gmail.con', 'gmail.com'],
    ['gmial.con', 'gmail.com'],
    ['gmail.cmo', 'gmail.com'],
    ['laposte.nett', 'laposte.net'],
    ['web.dee', 'web.de'],
    ['yahoo.co.ukk', 'yahoo.co.uk'],
  ] as const)
    t.match(
      await verify(`jane@${typed}`),
      {
        status: 'undeliverable',
        reasons: ['domain_not_public', 'possible_typo'],
        suggestion: `jane@${meant}`,
      },
      typed,
    )
  for (const [typed, meant] of [
    ['hotmial.com', 'hotmail.com'],
    ['yahoo.cm', 'yahoo.com'],
    ['outlook.co', 'outlook.com'],
    ['outlok.com', 'outlook.com'],
    ['hotmial.co.uk', 'hotmail.co.uk'],
    ['yaho.fr', 'yahoo.fr'],
  ] as const)
    t.equal(suggestDomain(typed), meant, typed)
})

t.test('leaves a correct domain without a suggestion, however close it is to a provider', (t) => {
  for (const domain of [
    ...FREE_PROVIDERS,
    'mail.de',
    'gmail.de',
    'cloud.com',
    'email.de',
    'live.be',
    'hotmail.ch',
    'outlook.cz',
    'gmx.fr',
    'mail.co',
    'web.dev',
    'free.com',
    'mailbox.org',
    'posteo.de',
    'hey.co',
    'me.co',
    'example.com',
    'printer.local',
    'localhost',
    'example.test',
    'cox.house',
    'mac.corp',
  ])
    t.equal(suggestDomain(domain), undefined, domain)
  t.end()
})

t.test('accepts one dead mail server next to a working one, and reports gaps in the answer', async (t) => {
  const answer = checkedAnswer(
    'util/email-verify',
    await handler.run({ email: 'jane@half.example.com' }, fixedContext()),
  )
  t.match(answer.body, {
    status: 'domain_accepts_mail',
    domain: { mx: [{ exchange: 'gone.example.com' }, { exchange: 'mail.example.com' }] },
  })
  t.match(answer.warnings, [{ code: 'dns_unknown', message: /dmarc/ }])
})

t.test('charges nothing when name servers fail or stay silent', async (t) => {
  const before = records.of('dns').figures
  await t.rejects(verify('jane@failing.example.com'), { code: 'source_error' })
  await t.rejects(verify('jane@silent.example.com'), Failure)
  t.equal(records.of('dns').figures.failed, before.failed + 2)
})

t.test('answers a malformed address without asking a name server', async (t) => {
  const before = records.of('dns').figures.asked
  const body = await verify('jane@@example.com')
  t.match(body, {
    status: 'undeliverable',
    reasons: ['invalid_syntax'],
    syntax: { valid: false },
    domain: null,
  })
  t.equal(records.of('dns').figures.asked, before)
})

t.test('shows the verdict only in the sample', async (t) => {
  t.strictSame(handler.preview(await verify('jane@example.com')), {
    status: 'domain_accepts_mail',
    syntax: { valid: true },
    has_mx: true,
    disposable: false,
  })
  t.match(handler.preview(await verify('jane')), { status: 'undeliverable', has_mx: false })
})

t.test('publishes an example that equals the handler’s answer', async (t) => {
  const example = publishedExample('util/email-verify')
  const body = await verify('jane.doe@example.com')
  t.strictSame(example, body)
})

t.test('claims nothing about the mailbox, and knows roles in eight languages', async (t) => {
  t.match(await verify('a@gmail.com'), { status: 'domain_accepts_mail', mailbox: 'unknown' })
  for (const role of [
    'sales',
    'vertrieb',
    'facturation',
    'ventas',
    'vendas',
    'fatture',
    'verkoop',
    'faktury',
  ])
    t.match(await verify(`${role}@example.com`), { role_account: true, status: 'risky' }, role)
})
