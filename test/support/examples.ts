import { isJsonObject, type Json } from '../../src/engine/handler.ts'

const MOMENT = '2026-11-20T20:00:00.000Z'
/** Fields whose lists an example shows the beginning of. */
const LONG = new Set(['items', 'in_all', 'similar_titles'])

/** An answer as an example shows it: short lists, one time everywhere, no warnings. */
export function trimmed(value: Json, field = ''): Json {
  if (field === 'warnings') return []
  if (field === 'fetched_at' || field === 'as_of') return MOMENT
  if (Array.isArray(value)) return (LONG.has(field) ? value.slice(0, 1) : value).map((each) => trimmed(each))
  if (!isJsonObject(value)) return value
  const members = Object.entries(value).map(([name, each]): [string, Json] => [
    name,
    // The lists below `unique` are named by country.
    trimmed(each, field === 'unique' ? 'in_all' : name),
  ])
  const short = Object.fromEntries(members)
  return Array.isArray(short['items']) && 'count' in short
    ? { ...short, count: short['items'].length }
    : short
}

/**
 * Where a body differs in shape from an example: every field of the example must be present with the same type. Null
 * matches everything; each item of a list is compared with the first of the example.
 */
export function differences(example: unknown, body: unknown, at = ''): string[] {
  if (example === null || body === null) return []
  if (Array.isArray(example)) {
    if (!Array.isArray(body)) return [`${at} is no list`]
    const [first] = example
    return first === undefined
      ? []
      : body.flatMap((item, place) => differences(first, item, `${at}/${place}`))
  }
  if (typeof example !== 'object') return typeof example === typeof body ? [] : [`${at} is ${typeof body}`]
  if (typeof body !== 'object' || Array.isArray(body)) return [`${at} is no object`]
  const fields = new Map(Object.entries(body))
  return Object.entries(example).flatMap(([name, value]) =>
    fields.has(name) ? differences(value, fields.get(name), `${at}/${name}`) : [`${at}/${name} is missing`],
  )
}
