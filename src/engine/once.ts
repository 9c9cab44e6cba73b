/** Makes a value when it is asked for first, and keeps it: what most processes never need costs their start nothing. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}
