import { isJsonObject, type Json } from '../../src/engine/index.ts'

const MOMENT = '2026-11-20T20:00:00.000Z'
/** Fields whose lists an example shows the beginning of. */
const LONG = new Set(['items', 'in_all', 'similar_titles'])

/** An answer as an example shows it: short lists, one moment for all times, and nothing to warn of. */
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
