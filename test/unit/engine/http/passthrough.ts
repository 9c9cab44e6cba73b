import { createServer } from 'node:http'
import Koa from 'koa'
import t, { type Test } from 'tap'
import { systemRuntime } from '../../../../src/engine/base/runtime.ts'
import { passthrough, type PassthroughSettings } from '../../../../src/engine/http/passthrough.ts'
import { RouteCounters } from '../../../../src/engine/usage/counts.ts'
import { listening } from '../../../support/http.ts'

/** A site behind nothing but the passthrough. */
async function openFront(
  t: Test,
  site: string,
  settings: Partial<PassthroughSettings> = {},
): Promise<{ readonly url: string; readonly faults: readonly unknown[] }> {
  const faults: unknown[] = []
  const koa = new Koa({ proxy: settings.trustProxy ?? false })
  koa.use(
    passthrough(
      {
        baseUrl: 'https://front.example',
        trustProxy: false,
        openRequest: systemRuntime.openRequest,
        owner: 'test',
        serving: { now: { boundary: { site: new URL(site), isOurs: () => false } } },
        phase: () => 'serving',
        report: (fault) => faults.push(fault),
        usageStore: { of: () => new RouteCounters() },
        now: systemRuntime.now,
        ...settings,
      },
      // Nothing belongs to it.
      (_, next) => next(),
    ),
  )
  const { url, close } = await listening(
    createServer((request, response) => void koa.callback()(request, response)),
  )
  t.teardown(close)
  return { url, faults }
}

async function openEcho(t: Test): Promise<string> {
  const { url, close } = await listening(
    createServer((request, response) => response.end(JSON.stringify(request.headers))),
  )
  t.teardown(close)
  return url
}

t.test('answers 504 when the site is silent', async (t) => {
  const { url: site, close } = await listening(createServer(() => undefined))
  t.teardown(close)
  const { url } = await openFront(t, site, {
    openRequest: (to, options) => systemRuntime.openRequest(to, { ...options, timeout: 1 }),
  })
  const response = await fetch(url)
  t.equal(response.status, 504)
  t.match(await response.json(), { code: 'source_timeout', charged: 'no' })
})

t.test('extends the chain of a trusted proxy, and no other', async (t) => {
  const site = await openEcho(t)
  const headers = {
    'X-Forwarded-For': '203.0.113.9',
    'X-Forwarded-Proto': 'https',
    'X-Forwarded-Host': 'shop.example',
  }
  const trusting = await openFront(t, site, { trustProxy: true, baseUrl: 'https://shop.example/api' })
  t.match(await (await fetch(trusting.url, { headers })).json(), {
    'x-forwarded-for': '203.0.113.9, 127.0.0.1',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'shop.example',
    'x-forwarded-prefix': '/api',
  })
  const wary = await openFront(t, site)
  t.match(await (await fetch(wary.url, { headers })).json(), {
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
    'x-forwarded-host': new URL(wary.url).host,
    'x-forwarded-prefix': undefined,
  })
})

t.test('ends a circle that leads back to itself', async (t) => {
  const { url: site, close } = await listening(
    createServer((request, response) => {
      fetch(`${front.url}${request.url}`, { headers: { via: request.headers.via ?? '' } })
        .then(async (answer) => response.writeHead(answer.status).end(await answer.text()))
        .catch(() => response.destroy())
    }),
  )
  t.teardown(close)
  const front = await openFront(t, site)
  const response = await fetch(front.url)
  t.equal(response.status, 502)
  t.match(await response.json(), { code: 'upstream_misconfigured' })
  t.match(front.faults, [{ code: 'upstream_misconfigured' }])
})

t.test('closes each connection while the process drains', async (t) => {
  const { url } = await openFront(t, await openEcho(t), { phase: () => 'draining' })
  t.equal((await fetch(url)).headers.get('connection'), 'close')
})
