import t from 'tap'
import { onchainClient } from '../../support/base-chain.ts'
import { addressOf, challengeOf, stockFetch } from '../../support/payment.ts'
import { readSandboxFile, startServer } from '../../support/server.ts'

const server = await startServer({ args: ['--sandbox', '--offline'] })
t.teardown(() => server.stop())
const { evm } = readSandboxFile(server)
const buy = stockFetch(evm.payerKey)
const charges = (): Promise<number> => onchainClient(evm).charges(addressOf(evm.payerKey))
const EXTRACT = '/util/extract?url=https%3A%2F%2Fexample.com%2F'
const EMAIL = '/util/email-verify?email=jane.doe%40example.com'
const INTEL = '/util/site-intel?target=example.com'

t.test('answers about pages, sites and addresses on the built server', async (t) => {
  const samples = await Promise.all(
    [EXTRACT, INTEL, EMAIL].map(async (path) => (await fetch(`${server.url}/sample${path}`)).json()),
  )
  t.match(samples[0], { preview: true, title: 'The Lamplighters of Wexmire', chunks: { length: 1 } })
  t.match(samples[1], { preview: true, resolves: true, tls: { valid: true } })
  t.match(samples[2], { preview: true, status: 'domain_accepts_mail', has_mx: true, domain: undefined })
  t.equal(await charges(), 0)
  const extract = await buy(`${server.url}/paid${EXTRACT}&max_chars=300&overlap=50`)
  t.equal(extract.status, 200)
  t.match(await extract.json(), {
    extraction: 'article',
    chunks: [{ index: 0 }],
    content_sha256: /^[0-9a-f]{64}$/,
  })
  const intel = await buy(`${server.url}/paid${INTEL}`)
  t.equal(intel.status, 200)
  t.match(await intel.json(), { registration: { registrar: 'Sandbox Registrar' }, security: { score: 100 } })
  const email = await buy(`${server.url}/paid/util/email-verify?email=jane%40empty.example.com`)
  t.match(await email.json(), { status: 'undeliverable', reasons: ['no_mail_server'] }, 'a no is an answer')
  t.equal(await charges(), 3)
})

t.test('charges nothing for a target that is refused or empty', async (t) => {
  const before = await charges()
  const table: readonly (readonly [string, number])[] = [
    ['/util/extract?url=http%3A%2F%2F169.254.169.254%2Flatest', 422],
    ['/util/extract?url=http%3A%2F%2Flocalhost%3A6379%2F', 422],
    [`/util/extract?url=${encodeURIComponent(server.url)}`, 422],
    ['/util/extract?url=https%3A%2F%2Fexample.com%2Finside', 422],
    ['/util/extract?url=https%3A%2F%2Fexample.com%2Freport.pdf', 422],
    ['/util/extract?url=https%3A%2F%2Fexample.com%2Fnope', 404],
    ['/util/extract?url=https%3A%2F%2Fexample.com%2Fbroken', 502],
    ['/util/extract?url=https%3A%2F%2Fexample.com%2F&max_chars=200&overlap=200', 422],
    ['/util/site-intel?target=10.0.0.1', 422],
    ['/util/email-verify?email=j', 422],
    ['/util/email-verify?email=jane%40failing.example.com', 502],
  ]
  for (const [path, status] of table) {
    t.equal((await buy(`${server.url}/paid${path}`)).status, status, path)
    const unpaid = await challengeOf(`${server.url}/paid${path}`)
    t.equal(unpaid.accepts.length > 0, true, 'an offer all the same')
  }
  t.equal(await charges(), before)
})
