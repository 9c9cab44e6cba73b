import { request } from 'node:http'
import t from 'tap'
import { addressOf, randomKey } from '../../../support/payment.ts'
import { startServer } from '../../../support/server.ts'

/** The servers on two hosts of their own, the third below the service. */
const server = await startServer({
  env: {
    HOST: '127.0.0.1',
    BASE_URL: 'https://api.example.com',
    MCP_URL: 'https://mcp.example.com',
    MEM_URL: 'https://memory.example.com',
    PAY_TO: addressOf(randomKey()),
    SETTLER_PRIVATE_KEY: randomKey(),
    RPC_URL_8453: 'http://127.0.0.1:9',
  },
})
t.teardown(() => server.stop())

/** What a proxy passes on: the path, and the host that was asked. */
function askAt(host: string, path: string): Promise<{ status: number; type: string; body: string }> {
  return new Promise((resolve, reject) => {
    request(new URL(path, server.url), { headers: { host } }, (response) => {
      let body = ''
      response.on('data', (chunk: Buffer) => (body += chunk.toString()))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, type: response.headers['content-type'] ?? '', body }),
      )
    })
      .on('error', reject)
      .end()
  })
}

t.test('serves each host the card of its own server', async (t) => {
  for (const [host, path, name] of [
    ['mcp.example.com', '/mcp/server-card', 'game'],
    ['memory.example.com', '/mcp/server-card', 'memory'],
    ['api.example.com', '/mcp/tools/server-card', 'tools'],
    ['127.0.0.1', '/mcp/game/server-card', 'game'],
    ['api.example.com', '/mcp/server-card', 'mcp'],
    ['api.example.com', '/.well-known/mcp/server-card.json', 'mcp'],
  ] as const) {
    const { status, type, body } = await askAt(host, path)
    t.equal(status, 200, `${host}${path}`)
    t.equal(type, 'application/mcp-server-card+json')
    const card = JSON.parse(body) as { name: string; remotes: { url: string }[] }
    t.equal(card.name, `com.example.api/${name}`)
    t.equal(
      card.remotes[0]?.url,
      `https://${host === '127.0.0.1' ? 'mcp.example.com/mcp' : host + path.replace('/.well-known/mcp/server-card.json', '/mcp').replace('/server-card', '')}`,
    )
  }
  t.equal((await askAt('mcp.example.com', '/mcp/nothing/server-card')).status, 404)
})

t.test('serves the page that the documentation links for a server', async (t) => {
  for (const name of ['game', 'memory', 'tools']) {
    const page = await askAt('api.example.com', `/docs/servers/${name}`)
    t.equal(page.status, 200)
    t.match(page.type, 'text/html')
  }
  t.match(
    (await askAt('api.example.com', '/docs/servers/game')).body,
    '<code>https://mcp.example.com/mcp</code>',
  )
})
