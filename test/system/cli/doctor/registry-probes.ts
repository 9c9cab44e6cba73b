import { createServer, type ServerResponse } from 'node:http'
import t from 'tap'
import { runLine } from '../../../support/run-command.ts'
import { listening } from '../../../support/http.ts'
import { startServer } from '../../../support/server.ts'

const server = await startServer({ args: ['--catalog', 'catalog.yaml', '--sandbox', '--offline'] })
t.teardown(() => server.stop())

/** Serves what the built server answers, as `change` has it, on Base instead of its test network. */
async function front(change: (path: string, text: string) => string | undefined): Promise<string> {
  const serve = async (path: string, method: string, response: ServerResponse): Promise<void> => {
    const answer = await fetch(server.url + path, { method, headers: { accept: 'application/json' } })
    const bytes = Buffer.from(await answer.arrayBuffer())
    for (const name of ['www-authenticate', 'content-type', 'payment-required']) {
      const value = answer.headers.get(name)
      if (value !== null) response.setHeader(name, value)
    }
    const header = answer.headers.get('payment-required')
    if (header !== null) {
      const challenge = Buffer.from(header, 'base64').toString().replaceAll('eip155:84532', 'eip155:8453')
      const changed = change('PAYMENT-REQUIRED', challenge) ?? challenge
      response.setHeader('PAYMENT-REQUIRED', Buffer.from(changed).toString('base64'))
    }
    response.writeHead(answer.status).end(change(path, bytes.toString()) ?? bytes)
  }
  const { url, close } = await listening(
    createServer(({ url: path = '', method = '' }, response) => {
      serve(path, method, response).catch((fault: unknown) => response.destroy(fault as Error))
    }),
  )
  t.teardown(close)
  return url
}

const resultsOf = async (
  url: string,
): Promise<readonly { level: string; subject: string; message: string }[]> =>
  JSON.parse((await runLine(['doctor', '--listing', url, '--json'])).out).results

t.test('finds nothing that a registry would reject but the address of this machine', async (t) => {
  const url = await front(() => undefined)
  const results = await resultsOf(url)
  t.match(
    results.filter(({ level }) => level === 'fails'),
    [{ subject: 'x402scan', message: /^only public https origins are taken: .*\(http:\/\/127/ }],
  )
  t.equal(results.filter(({ level }) => level === 'fails').length, 1)
  const { code, out } = await runLine(['doctor', '--listing', url])
  t.equal(code, 1)
  t.match(out, /^ok +MPP registries +24 operations can be listed$/m)
  t.match(out, /^warn +Bazaar +no facilitator has reported a listing yet/m)
})

t.test('names each operation that a registry would reject, and why', async (t) => {
  const rejected = {
    facilitator: 'pay.example',
    operation: 'ping',
    status: 'rejected',
    reason: 'description too long',
    at: '2026-11-22T00:00:00.000Z',
  }
  const url = await front((path, text) => {
    if (path === '/status.json') return JSON.stringify({ ...JSON.parse(text), listings: [rejected] })
    if (path === '/openapi.json') {
      const document = JSON.parse(text)
      delete document.info.contact
      delete document.info['x-guidance']
      delete document.paths['/paid/ping'].get.summary
      return JSON.stringify(document)
    }
    if (path !== 'PAYMENT-REQUIRED') return undefined
    const challenge = JSON.parse(text)
    if (challenge.resource.url.includes('/paid/ping')) {
      challenge.resource.description = 'x'.repeat(501)
      challenge.resource.serviceName = 'Café'
      challenge.accepts[0].network = 'eip155:137'
    }
    if (challenge.resource.url.includes('/paid/gamestore/app/')) {
      challenge.resource.url = 'https://api.example.com/paid/gamestore/app/%7Bappid%7D'
      delete challenge.extensions.bazaar
    }
    return JSON.stringify(challenge)
  })
  const { out } = await runLine(['doctor', '--listing', url])
  for (const line of [
    /^fails +x402scan +neither Base nor Solana is offered: .* \(GET \/paid\/ping\)$/m,
    /^fails +x402scan +guidance of 1 to 4,000 characters is needed/m,
    /^warn +x402scan +no contact/m,
    /^fails +AgentCash +no summary, security or 402 response .* \(GET \/paid\/ping\)$/m,
    /^fails +Bazaar +description of more than 500 characters.* \(GET \/paid\/ping\)$/m,
    /^fails +Bazaar +name of the service .* \(GET \/paid\/ping\)$/m,
    /^fails +Bazaar +no bazaar extension .* \(GET \/paid\/gamestore\/app\/\{appid\}\)$/m,
    /^fails +Bazaar +the address in the offer holds a template/m,
    /^fails +Bazaar +a facilitator rejects the listing \(ping by pay\.example: description too long\)$/m,
  ])
    t.match(out, line)
})

t.test('names what is missing where there is no OpenAPI document', async (t) => {
  const url = await front((path) => (path === '/openapi.json' ? '[]' : undefined))
  t.match(await runLine(['doctor', '--listing', url]), {
    code: 1,
    err: /\/openapi\.json is no JSON object \(it answers 200\): registries read it first/,
  })
  t.match(await runLine(['doctor', '--listing']), { code: 64, err: /name the URL of the service/ })
})
