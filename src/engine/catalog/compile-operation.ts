import { parseDuration } from '../base/duration.ts'
import { digestJson, isJsonObject, type Json } from '../base/json.ts'
import type { Owner } from './arguments.ts'
import { compileResponse } from './body.ts'
import { compileAccess } from './access.ts'
import type { Operation, Parameter } from './catalog.ts'
import type { DeclaredEntry } from './check-context.ts'
import type { Namer } from './namer.ts'
import { compilePrice, type PriceInputs } from './price/compile-price.ts'
import { compileMeter } from './price/compile-meter.ts'
import type { Declared } from './schema.ts'
import type { Path, SourceDocument } from './yaml-document.ts'

/** What a route or a tool needs from the rest of the catalog. */
export interface Compiler {
  readonly owners: ReadonlyMap<string, Owner>
  readonly document: SourceDocument
  readonly json: (value: unknown) => Json | undefined
  /** Ids of operations: payments are bound to them, so each is unique. */
  readonly id: Namer
  /** Who calls without paying, unless an operation says otherwise. */
  readonly access: Declared['access']
  /** Names of routes. */
  readonly name: Namer
  /** Whether a handler of this name is loaded; an operation without one is planned. */
  readonly isLoaded: (handler: string) => boolean
}

/** What differs between the operation of a route and that of a tool. */
export interface OperationPlace extends Pick<
  Operation,
  'handler' | 'method' | 'settle' | 'cache' | 'upstream' | 'tool'
> {
  /** Preferred ids. */
  readonly id: Parameters<Namer>
  readonly at: Path
  /** All arguments of the handler, whichever endpoint declares them. */
  readonly arguments: readonly Parameter[]
  readonly inputs: PriceInputs
}

/** An operation from the keys that routes and tools share. `settle` of the place is the default. */
export function compileOperation(
  entry: DeclaredEntry['entry'],
  { id, at, arguments: parameters, inputs, ...place }: OperationPlace,
  { document, json, id: nameId, access, isLoaded }: Compiler,
): Operation {
  const price = compilePrice(document, [...at, 'price'], entry.price, inputs)
  const example = json(entry.example)
  const responseSchema = json(entry.response?.schema)
  return {
    ...place,
    id: nameId(...id),
    price,
    meter: compileMeter(document, [...at, 'price'], entry.price, { price, example }),
    access: compileAccess({ ...place, price }, entry.access, access),
    title: entry.title,
    summary: entry.summary,
    useWhen: entry.use_when,
    queries: entry.queries ?? [],
    description: entry.description,
    deprecated: entry.deprecated === true,
    category: entry.category,
    timeout: parseDuration(entry.timeout ?? '20s') ?? 0,
    settle: entry.settle ?? place.settle,
    parameters,
    body: inputs.body,
    response: compileResponse(entry.response),
    sources: entry.sources ?? [],
    example,
    form: digestJson(example ?? null).slice(0, 8),
    responseSchema: isJsonObject(responseSchema) ? responseSchema : undefined,
    skill: entry.skill,
    planned: entry.planned === true || !isLoaded(place.handler),
  }
}
