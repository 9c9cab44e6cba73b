import type { Parameter, Route } from '../engine/catalog/catalog.ts'
import { spellPrice } from '../engine/catalog/price/text.ts'
import { type OperationView, viewRoute } from '../engine/documents/operation-view.ts'
import { formatDuration } from '../engine/base/duration.ts'
import type { Revision } from '../engine/http/revision.ts'
import { tableFor } from './terminal-text.ts'
import type { Call } from './command.ts'
import { previewRevision } from './preview.ts'

/** One route as `--json` prints it. */
export interface RouteRow {
  readonly method: string
  readonly path: string
  readonly kind: string
  /** USD with six decimals, or a range; null: free. */
  readonly price: string | null
  readonly protocols: readonly string[]
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly type: string
    readonly required: boolean
    readonly default?: string | number | boolean
  }[]
  readonly handler: string
  readonly cache: string | null
  readonly available: boolean
}

export async function routes(call: Call): Promise<number> {
  const { positionals, flags, terminal, env } = call
  const { catalog, revision } = await previewRevision(call, positionals[0] ?? env.catalog)
  if (flags.given('json')) {
    const rows = catalog.routes.map((route) => rowOf(route, revision))
    terminal.out(JSON.stringify(rows, null, 2))
  } else {
    const rows = catalog.routes.map((route) => tableRow(route, viewRoute(catalog, revision.facts, route)))
    terminal.out(tableFor(terminal, { heads: HEADS, short: SHORT_HEADS, rows }))
    const { passthrough } = catalog
    if (passthrough !== undefined) terminal.out(`\nall else passes to ${passthrough.url}, unpaid`)
  }
  return 0
}

const PROTOCOLS = ['x402', 'mpp'] as const

function rowOf(route: Route, { catalog, facts }: Revision): RouteRow {
  const { operation, kind, path, parameters } = route
  const paid = kind === 'paid'
  return {
    method: operation.method,
    path,
    kind,
    price: paid && operation.price !== undefined ? spellPrice(operation.price, operation.meter) : null,
    protocols: paid ? PROTOCOLS.filter((name) => catalog.payments[name] !== undefined) : [],
    parameters: parameters.map(describe),
    handler: operation.handler,
    cache: operation.cache === undefined ? null : formatDuration(operation.cache.ttl),
    available: facts.available(operation),
  }
}

function describe({
  name,
  in: place,
  type,
  required,
  default: value,
}: Parameter): RouteRow['parameters'][number] {
  const row = { name, in: place, type, required }
  return value === undefined ? row : { ...row, default: value }
}

/** What fits beside each other on a terminal. */
const SHORT_HEADS = ['PATH', 'PRICE', 'SERVED', 'PARAMETERS']
const HEADS = ['PATH', 'TITLE', 'PRICE', 'CACHE', 'SERVED', 'PARAMETERS']

function tableRow({ operation: { cache } }: Route, view: OperationView): string[] {
  return [
    view.name,
    view.title + (view.deprecation === '' ? '' : ', deprecated'),
    view.price || 'free',
    cache === undefined ? '-' : formatDuration(cache.ttl),
    view.unavailability === '' ? 'yes' : 'no',
    view.parameters.map(({ brief }) => brief).join(' '),
  ]
}
