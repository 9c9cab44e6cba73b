import type { Catalog, Route } from '../catalog/catalog.ts'
import { isJsonObject, type Json } from '../base/json.ts'
import type { OperationView } from './operation-view.ts'

/** Enough for the words of a long description, little beside the row. */
const LONGEST = 700

/**
 * The words by which a route is found besides those of its row: when it is of use, what people ask, its sources, what it
 * takes and what it answers with.
 */
export function searchWords({ sources }: Catalog, route: Route, view: OperationView): string {
  const { operation, parameters } = route
  const texts = [
    view.useWhen,
    ...operation.queries,
    ...operation.sources.flatMap((name) => [name, sources[name]?.title ?? '']),
    ...parameters.flatMap(({ name, description = '' }) => [name, description]),
    view.description,
    ...namesOf(operation.example ?? null),
  ]
  const shown = new Set(wordsOf(`${view.title} ${view.name} ${view.promise}`))
  const found = new Set(texts.flatMap(wordsOf).filter((word) => !shown.has(word)))
  let text = ''
  for (const word of found) if (text.length + word.length < LONGEST) text += `${text && ' '}${word}`
  return text
}

function wordsOf(text: string): string[] {
  return (text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []).filter((word) => !COMMON.has(word))
}

const COMMON = new Set(
  'and are for from has have its not one that the their then they this use when which with you your'.split(
    ' ',
  ),
)

function* namesOf(value: Json): Generator<string> {
  if (Array.isArray(value)) yield* namesOf(value[0] ?? null)
  else if (isJsonObject(value))
    for (const [name, member] of Object.entries(value)) {
      yield name
      yield* namesOf(member)
    }
}
