import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { listening } from '../support/http.ts'
import { ROOT } from '../support/markdown.ts'

/** By package; undefined: the registry has no answer. */
let severities: Readonly<Record<string, string>> | undefined = {}

/** A registry that knows advisories and nothing else. */
const registry = await listening(
  createServer((request, response) => {
    if (severities === undefined || !request.url?.endsWith('/advisories/bulk'))
      return response.writeHead(404).end('{}')
    const advisories = Object.entries(severities).map(([name, severity], index) => {
      const advisory = { id: index, url: `https://example.com/${name}`, title: `Bad ${name}`, severity }
      return [name, [{ ...advisory, vulnerable_versions: '>=0.0.0', cwe: [], cvss: { score: 0 } }]]
    })
    response.setHeader('content-type', 'application/json').end(JSON.stringify(Object.fromEntries(advisories)))
  }),
)
t.teardown(() => registry.close())

async function check(t: Test): Promise<{ readonly code: unknown; readonly output: string }> {
  // npm remembers advisories by their number.
  const cache = mkdtempSync(join(tmpdir(), 'ratecard-advisories-'))
  t.teardown(() => rmSync(cache, { recursive: true, force: true }))
  const child = spawn('npm', ['run', '--silent', 'advisories'], {
    cwd: ROOT,
    env: {
      ...process.env,
      npm_config_registry: registry.url,
      npm_config_cache: cache,
      npm_config_fetch_retries: '0',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const [code] = await once(child, 'close')
  return { code, output }
}

t.test('fails for a high or critical advisory in code that a package contains', async (t) => {
  for (const severity of ['high', 'critical']) {
    severities = { ox: severity, tap: 'critical' }
    const { code, output } = await check(t)
    t.equal(code, 1)
    t.match(output, new RegExp(`ox@[\\d.]+.*: ${severity}: Bad ox .*https://example.com/ox`))
    t.notMatch(output, 'Bad tap')
  }
})

t.test('passes advisories in what is not bundled, and lower ones', async (t) => {
  severities = { tap: 'critical', koa: 'high', ws: 'moderate' }
  const { code, output } = await check(t)
  t.equal(code, 0)
  t.match(output, /^0 high or critical advisories in \d+ bundled packages$/m)
})

t.test('says that nothing was checked when the registry has no advisories', async (t) => {
  severities = undefined
  const { code, output } = await check(t)
  t.equal(code, 0)
  t.match(output, /^bundled code was not checked: /)
})
