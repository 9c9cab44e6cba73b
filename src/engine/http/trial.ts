import { templatesOf } from '../catalog/catalog.ts'
import type { RawParameters } from '../catalog/validator.ts'
import { Failure } from '../base/errors.ts'
import type { JsonObject, Json } from '../base/json.ts'
import type { Operation, ToolEndpoint, Route } from '../catalog/catalog.ts'
import { type ExecutionDeps, unreadyFailure, ANONYMOUS, execute } from '../purchase/execution.ts'
import type { Probes } from '../service-definition.ts'
import type { Revision } from './revision.ts'
import { toolsAlone } from './revision.ts'

/** The result of one route or tool that was run with its example. */
export interface Trial {
  readonly path: string
  readonly outcome: { readonly kind: 'answered' } | { readonly kind: 'failed'; readonly fault: unknown }
}

/**
 * Runs the work of every paid route, and of every paid tool without a route, once, one after the other, with the examples
 * of their parameters, and handlers with the arguments of `probes` after them: nothing is charged, and nothing comes from the
 * cache. What has effects, streams, or needs to know who pays, is left alone; so is what is not `wanted` when its turn comes.
 */
export async function* tryOperations(
  { routes, tools, operations }: Revision,
  deps: ExecutionDeps,
  wanted: (operation: Operation) => boolean,
  probes: Probes,
): AsyncGenerator<Trial> {
  const paid = routes.filter(({ route }) => route.kind === 'paid' && route.operation.method === 'GET')
  const bare = toolsAlone({ tools, routes }).filter(
    ({ endpoint: { operation, tool } }) => operation.price !== undefined && tool.requires === undefined,
  )
  const trials = [
    ...paid.map(({ route, validate, ...served }) => ({
      path: route.path,
      served,
      validate: () => validate(exampleOf(route)),
    })),
    ...bare.map(({ endpoint, served, check }) => ({
      path: endpoint.path,
      served,
      validate: () => check(exampleArguments(endpoint)),
    })),
    ...Object.entries(probes).flatMap(([handler, calls]) => {
      const served = operations.get(handler)
      return served === undefined
        ? []
        : calls.map((args) => ({
            path: `${handler} ${JSON.stringify(args)}`,
            served,
            validate: () => ({ kind: 'valid', args }) as const,
          }))
    }),
  ]
  for (const { path, served, validate } of trials) {
    const { operation, handler, readiness, store } = served
    if (store !== undefined || operation.response.stream || !wanted(operation)) continue
    const unready = unreadyFailure(readiness)
    const validated = validate()
    try {
      if (unready !== undefined) throw unready
      if (validated.kind === 'invalid') throw new Failure('internal', 'its own examples are refused')
      const { args } = validated
      const work = { operation, handler, args, caller: ANONYMOUS, timeLeft: operation.timeout, operations }
      await execute(deps, { ...work, reuse: 'never' })
      yield { path, outcome: { kind: 'answered' } }
    } catch (fault) {
      yield { path, outcome: { kind: 'failed', fault } }
    }
  }
}

/** The arguments of a tool's examples; an example of an object is JSON. */
function exampleArguments({ parameters }: ToolEndpoint): JsonObject {
  return Object.fromEntries(
    parameters.flatMap(({ name, type, example }): [string, Json][] => {
      if (example === undefined) return []
      return [[name, type === 'object' ? (JSON.parse(String(example)) as Json) : example]]
    }),
  )
}

/** Every parameter with an example, as a caller would send it. */
function exampleOf({ path, parameters }: Route): RawParameters {
  const given = parameters.flatMap(({ name, example }): [string, string][] =>
    example === undefined ? [] : [[name, String(example)]],
  )
  const inPath = new Set(templatesOf(path))
  return {
    path: Object.fromEntries(given.filter(([name]) => inPath.has(name))),
    query: new URLSearchParams(given.filter(([name]) => !inPath.has(name))).toString(),
  }
}
