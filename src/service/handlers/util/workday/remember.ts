/** `make` with its latest `limit` results kept; the one unused for longest is forgotten first. */
export function remember<Key, Value>(limit: number, make: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, { readonly value: Value }>()
  return (key) => {
    const entry = known.get(key) ?? { value: make(key) }
    known.delete(key)
    known.set(key, entry)
    for (const oldest of known.keys()) {
      if (known.size <= limit) break
      known.delete(oldest)
    }
    return entry.value
  }
}
