/**
 * Where a body differs in kind from an example: every field of the example must be there, each of the same type. Null
 * fits everything, and the items of a list are held against the first of the example.
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
