import { templatesOf, type Route } from '../catalog/catalog.ts'
import { Failure } from '../errors.ts'
import { execute, ANONYMOUS, type ExecutionDeps } from '../purchase/execution.ts'
import type { RawParameters } from '../catalog/validator.ts'
import { unreadyFailure } from '../purchase/execution.ts'
import type { Revision } from './revision.ts'

/** What came of one route when it was run as its example says. */
export interface Trial {
  readonly route: Route
  readonly outcome: { readonly kind: 'answered' } | { readonly kind: 'failed'; readonly fault: unknown }
}

/**
 * Runs the work of every paid route once, one after the other, with the examples of its parameters: nothing is charged,
 * and nothing comes from the cache. Routes that store something are left alone.
 */
export async function* tryRoutes(revision: Revision, workshop: ExecutionDeps): AsyncGenerator<Trial> {
  const { routes, operations } = revision
  for (const { route, readiness, validate, handler, store } of routes) {
    if (route.kind !== 'paid' || store !== undefined) continue
    const unready = unreadyFailure(readiness)
    const validated = validate(exampleOf(route))
    const { operation } = route
    try {
      if (unready !== undefined) throw unready
      if (validated.kind === 'invalid') throw new Failure('internal', 'its own examples are refused')
      const timeLeft = operation.timeout
      const { args } = validated
      const work = {
        operation,
        handler,
        args,
        caller: ANONYMOUS,
        timeLeft,
        reuse: 'never',
        operations,
      } as const
      await execute(workshop, work)
      yield { route, outcome: { kind: 'answered' } }
    } catch (fault) {
      yield { route, outcome: { kind: 'failed', fault } }
    }
  }
}

/** Every parameter that has an example, as a caller would send it. */
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
