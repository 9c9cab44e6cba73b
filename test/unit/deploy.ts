import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse } from 'yaml'
import { COUNTED, READINGS } from '../../src/cli/metric-table.ts'
import { NETWORKS } from '../../src/engine/base/networks.ts'
import { readEnv } from '../../src/env.ts'
import { service } from '../../src/service/index.ts'
import { shippedCatalog } from '../support/shipped-catalog.ts'

const text = (file: string): string => readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8')

/** Every name that the program asks its environment for; endpoints of networks are found by their form. */
function namesRead(): Set<string> {
  const names = new Set<string>()
  readEnv(
    new Proxy<Record<string, string>>(
      {},
      {
        get: (_, name) => {
          names.add(String(name))
        },
      },
    ),
    service,
  )
  return names
}

const read = namesRead()
const isRead = (name: string): boolean => read.has(name) || /^RPC_URL_\d+$/.test(name)

/** Names in an env file with their values, those behind a comment sign included. */
function variables(file: string): Map<string, string> {
  return new Map(
    Array.from(text(file).matchAll(/^#?([A-Z][A-Z0-9_]*)=(.*)$/gm), ([, name = '', value = '']) => [
      name,
      value,
    ]),
  )
}

interface Service {
  readonly command?: string
  readonly volumes?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly networks: readonly string[]
}

const compose = text('compose.yaml')
const { services } = parse(compose, { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>
}
const interpolated = new Set(Array.from(compose.matchAll(/\$\{([A-Z_]+)/g), ([, name = '']) => name))

t.test('.env.example lists every variable that the program reads', async (t) => {
  const listed = variables('.env.example')
  t.ok(read.size > 40, 'the program was asked')
  for (const name of read) t.ok(listed.has(name), name)
})

t.test('reads every variable in .env.example and compose.yaml', async (t) => {
  for (const name of variables('.env.example').keys()) t.ok(isRead(name) || interpolated.has(name), name)
  for (const name of interpolated) t.ok(variables('.env.example').has(name), `${name} is asked for`)
  for (const service of ['ratecard-1', 'ratecard-2'])
    for (const name of Object.keys(services[service]?.environment ?? {})) t.ok(isRead(name), name)
})

t.test('states the defaults of the program in .env.example', async (t) => {
  const promised = Array.from(variables('.env.example')).filter(
    ([name, value]) =>
      /^(PORT|HOST|CATALOG|DATA_DIR|LOG_LEVEL|TRUST_PROXY|LEDGER_UNSAFE|LEDGER_REPLICAS|SANCTIONS_DIR|OPENAI_BASE_URL|OFAC_URL)$|^(STEAM|TWITCH_API|TWITCH_ID|IGDB|CROSSREF|DATACITE|DOI|RDAP)\w*URL$/.test(
        name,
      ) && value !== '',
  )
  t.ok(promised.length > 15)
  const [given, unset] = [readEnv(Object.fromEntries(promised), service), readEnv({}, service)]
  t.same(JSON.parse(JSON.stringify(given)), JSON.parse(JSON.stringify(unset)))
})

t.test('Redis keeps acknowledged payments on disk and evicts none', async (t) => {
  t.match(services['redis']?.command, /--appendonly yes/)
  t.match(services['redis']?.command, /--appendfsync always/)
  t.match(services['redis']?.command, /--maxmemory-policy noeviction/)
})

t.test('only the proxy is reachable from outside', async (t) => {
  for (const [name, { ports = [], networks }] of Object.entries(services)) {
    if (name !== 'proxy') t.same(ports, [], name)
    if (['redis', 'postgres'].includes(name)) t.same(networks, ['inside'], name)
  }
})

t.test('the proxy sends requests to every instance', async (t) => {
  const [, upstreams = ''] = /reverse_proxy (.*) \{/.exec(text('Caddyfile')) ?? []
  const instances = Object.keys(services).filter((name) => name.startsWith('ratecard-'))
  t.same(
    upstreams.split(' '),
    instances.map((name) => `${name}:4021`),
  )
  t.match(text('Dockerfile'), /PORT=4021/)
})

interface Alert {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly runbook_url: string }
}

function alerts(): readonly Alert[] {
  const { groups } = parse(text('alerts.yml')) as {
    readonly groups: readonly { readonly rules: readonly Alert[] }[]
  }
  return groups.flatMap((group) => group.rules)
}

interface Panel {
  readonly title: string
  readonly targets?: readonly { readonly expr: string }[]
}

t.test('every alert has a query, a severity, a text and a runbook', async (t) => {
  const rules = alerts()
  t.ok(rules.length >= 10)
  for (const rule of rules)
    t.match(rule, {
      alert: /^Ratecard\w+$/,
      expr: /ratecard_\w+/,
      labels: { severity: /^(page|ticket)$/ },
      annotations: { summary: /\w/, description: /\.$/ },
    })
  t.same(
    rules.map(({ annotations }) => annotations.runbook_url),
    rules.map(
      ({ alert }) => `https://github.com/ratecard/ratecard/blob/main/docs/alerts.md#${alert.toLowerCase()}`,
    ),
  )
  const headings = Array.from(text('../docs/alerts.md').matchAll(/^## (.+)$/gm), ([, name = '']) => name)
  t.same(headings.toSorted(), rules.map(({ alert }) => alert).toSorted())
})

t.test('alerts and dashboard ask for labels that their metrics have', async (t) => {
  const { panels } = JSON.parse(text('grafana.json')) as { readonly panels: readonly Panel[] }
  const labelsOf = new Map<string, readonly string[]>([
    ...Object.entries(COUNTED).map(([name, { labels }]) => [name, labels] as const),
    ...READINGS.map(({ name, labels }) => [name, labels] as const),
    ['ratecard_request_duration_seconds_bucket', ['route', 'le']],
  ])
  const queries = [
    ...alerts().map(({ alert, expr }) => ({ place: alert, expr })),
    ...panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ place: title, expr }))),
  ]
  t.ok(queries.length > 40)
  for (const { place, expr } of queries) {
    const known = new Set(['instance'])
    for (const [name] of expr.matchAll(/\bratecard_\w+/g))
      for (const label of labelsOf.get(name) ?? []) known.add(label)
    const asked = [
      ...Array.from(expr.matchAll(/by \(([^)]*)\)/g)).flatMap(([, list = '']) => list.split(', ')),
      ...Array.from(expr.matchAll(/[{,](\w+)[=!]/g), ([, name = '']) => name),
    ]
    for (const label of asked) t.ok(known.has(label), `${place}: ${label}`)
  }
})

t.test('the deployment page serves an own catalog from every instance', async (t) => {
  const page = text('../docs/deployment.md')
  const [, own = ''] = /^To serve your own catalog[^]*?```yaml\n([^]*?)```/m.exec(page) ?? []
  const { services: changed } = parse(own, { merge: true }) as {
    readonly services: Readonly<Record<string, Partial<Service>>>
  }
  const instances = Object.keys(services).filter((name) => name.startsWith('ratecard-'))
  t.same(Object.keys(changed), instances)
  for (const name of instances) {
    const { command, environment, volumes = [] } = changed[name] ?? {}
    t.match(environment?.['CATALOG'], /^\/tea\//, name)
    t.match(command, '--handlers /tea/', name)
    t.match(volumes.join(), ':/tea:ro', name)
  }
})

t.test('the environment file names every network that can be offered', async (t) => {
  for (const { chainId, title } of NETWORKS)
    t.match(text('.env.example'), new RegExp(`^#.*\\b${chainId} ${title.split(' ')[0]}`, 'm'), title)
})

t.test('the deployment page states the terms of every source', async (t) => {
  const told = new Map(
    Array.from(
      text('../docs/deployment.md').matchAll(/^\| `(needs_agreement|unknown|allowed)` +\| (.*?) *\|$/gm),
    ).flatMap(([, resale = '', names = '']) =>
      Array.from(names.replace(/\(.*?\)|:.*/g, '').matchAll(/[a-z][a-z-]+/g)).flatMap(([name]) =>
        name === 'and' ? [] : [[name, resale] as const],
      ),
    ),
  )
  const stated = Object.entries(shippedCatalog().sources).map(([name, { resale }]) => [name, resale] as const)
  t.same(told, new Map(stated))
})
